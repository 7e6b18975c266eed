// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// record is what was measured of one TrafficSplit.
type record struct {
	windows []analysis.Window // oldest first
	health  analysis.Health
}

// close adds a window. Readers hold the slice of before.
func (r *record) close(w analysis.Window) {
	first := max(0, len(r.windows)+1-keep)
	r.windows = append(slices.Clone(r.windows[first:]), w)
	r.health.LastWindow = w.End
}

// after are the windows that ended after a time.
func (r *record) after(t time.Time) ([]analysis.Window, analysis.Health) {
	i := len(r.windows)
	for i > 0 && r.windows[i-1].End.After(t) {
		i--
	}
	return slices.Clone(r.windows[i:]), r.health
}

// target is what is known of one split that proxies serve. The lock of Proxies guards it.
type target struct {
	record
	spec     analysis.Target
	weight   analysis.Weight
	windower analysis.Windower
}

func (t *target) sameBackends(o analysis.Target) bool {
	return t.spec.Stable == o.Stable && t.spec.Canary == o.Canary
}

// add stores the outcome of a scrape and reports whether there is a new window
// or the health has changed.
func (t *target) add(s analysis.Scrape, err error) bool {
	var (
		window analysis.Window
		reason = analysis.ReasonNoData
	)
	if errors.Is(err, errNoPods) {
		reason = analysis.ReasonNoPods
	}
	if err == nil {
		t.windower, window, reason = t.windower.Add(s, t.weight)
	}
	before := t.health
	t.health.Reason, t.health.Message = reason, message(s, err)
	t.health.Pods, t.health.Missed = len(t.spec.Pods), len(s.Missed)
	if err == nil && len(s.Pods) > 0 {
		t.health.LastScrape = s.At
	}
	if reason != "" {
		return changed(before, t.health)
	}
	t.close(window)
	return true
}

// changed reports whether the difference is worth telling. The text of an
// error may differ each time; that alone is not.
func changed(a, b analysis.Health) bool {
	return a.Reason != b.Reason || (a.Missed == 0) != (b.Missed == 0)
}

// message says what was wrong with a scrape, "" when nothing was.
func message(s analysis.Scrape, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(s.Missed) > 0:
		return s.Missed[0].Err.Error()
	}
	return ""
}
