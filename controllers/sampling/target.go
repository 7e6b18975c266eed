// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// target is what is known of one watched key. The Collector's lock guards it.
type target struct {
	spec   analysis.Target
	weight analysis.Weight
	busy   bool // a scrape is under way
	eager  bool // what is measured has changed: do not wait for the next round

	windower analysis.Windower
	windows  []analysis.Window // oldest first
	health   analysis.Health
}

func (t *target) sameBackends(o analysis.Target) bool {
	return t.spec.Stable == o.Stable && t.spec.Canary == o.Canary
}

// add stores the outcome of a scrape and reports whether there is a new window
// or the health has changed.
func (t *target) add(s analysis.Scrape, err error, keep int) bool {
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
	t.health.LastWindow = window.End
	// A fresh slice: readers hold the old one.
	first := max(0, len(t.windows)+1-keep)
	t.windows = append(slices.Clone(t.windows[first:]), window)
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

func (t *target) windowsAfter(after time.Time) []analysis.Window {
	i := len(t.windows)
	for i > 0 && t.windows[i-1].End.After(after) {
		i--
	}
	return slices.Clone(t.windows[i:])
}
