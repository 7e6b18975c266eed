// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// fullWeight is the weight of a user's metric that counts as much as the failures
// that Serin's own proxies count.
const fullWeight = 10

// staleIntervals is how many intervals old the newest number may be.
const staleIntervals = 3

// Settings are what the judge is to hold a release against.
type Settings struct {
	Limits      []judge.Limit
	Comparisons []judge.Comparison
	// ValuesOnly, StaleAfter and Tolerance are for a release without a router, see Counted.
	ValuesOnly bool
	StaleAfter time.Duration
	Tolerance  float64
}

// Of are the settings of metrics, with the release's tolerance for comparisons that
// have none. Metrics that are only tried out have no part in it.
func Of(list []resolve.Metric, tolerance float64) (s Settings) {
	for i := range list {
		switch m := &list[i]; {
		case m.DryRun:
		case m.Compare != nil:
			c := judge.Comparison{Name: m.Name, Weight: float64(m.Compare.Weight) / fullWeight, Tolerance: tolerance}
			if m.Compare.Tolerance != nil {
				c.Tolerance = *m.Compare.Tolerance
			}
			s.Comparisons = append(s.Comparisons, c)
		default:
			s.Limits = append(s.Limits, limit(m))
		}
	}
	return s
}

func limit(m *resolve.Metric) judge.Limit {
	low, high := math.Inf(-1), math.Inf(1)
	if m.Min != nil {
		low = *m.Min
	}
	if m.Max != nil {
		high = *m.Max
	}
	l := judge.ValueBetween(m.Name, low, high)
	l.ConsecutiveFailureLimit, l.MinSamples = m.ConsecutiveFailureLimit, int64(m.MinSamples)
	l.StaleAfter = max(l.StaleAfter, staleIntervals*m.Interval)
	if j := m.Provider.Job; j != nil && !j.Repeat {
		l.StaleAfter = math.MaxInt64 // it runs once for a step, which lasts as long as it lasts
	}
	return l
}

// Attach adds what the metrics gave to the windows of traffic in which it became
// known. Nothing that was known at the end of the last window that was judged is
// added again; what came between two windows belongs to the later one. Of two
// measurements of one metric in one window the later counts. What was measured before
// the present weight was live says nothing about it.
func Attach(windows []analysis.Window, series []metrics.Series, judged, liveSince time.Time) []analysis.Window {
	if len(series) == 0 {
		return windows
	}
	out := slices.Clone(windows)
	for i := range out {
		for _, s := range series {
			if !s.Metric.DryRun {
				attach(&out[i], s, judged, liveSince)
			}
		}
		judged = out[i].End
	}
	return out
}

// KnownSince are the numbers that became known since the last one that was judged, in the
// order of that: for when no traffic can be measured, which must not hide them.
func KnownSince(series []metrics.Series, judged, liveSince time.Time) (out []analysis.KnownValue) {
	for _, s := range series {
		if s.Metric.DryRun || s.Metric.Compare != nil {
			continue
		}
		for i := range s.Samples {
			if x := &s.Samples[i]; x.Known.After(judged) && !x.At.Before(liveSince) && x.Reason != source.Pending {
				out = append(out, analysis.KnownValue{At: x.Known, Value: value(s.Metric.Name, x)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b analysis.KnownValue) int { return a.At.Compare(b.At) })
	return out
}

func attach(w *analysis.Window, s metrics.Series, after, liveSince time.Time) {
	within := func(known time.Time) bool { return known.After(after) && !known.After(w.End) }
	early := func(at time.Time) bool { return !w.Start.Before(liveSince) && at.Before(liveSince) }
	if s.Metric.Compare == nil {
		if last := lastOf(s.Samples, func(x metrics.Sample) bool { return within(x.Known) && !early(x.At) && x.Reason != source.Pending }); last != nil {
			w.Values = append(w.Values, value(s.Metric.Name, last))
		}
		return
	}
	if last := lastOf(s.Windows, func(x metrics.Window) bool { return within(x.Known) }); last != nil {
		w.Samples = append(w.Samples, analysis.Sample{
			Name: s.Metric.Name, Start: last.Start, Canary: arm(last.Canary, s.Metric.Compare.More), Stable: arm(last.Stable, s.Metric.Compare.More),
		})
	}
}

func lastOf[T any](list []T, wanted func(T) bool) *T {
	for i := len(list) - 1; i >= 0; i-- {
		if wanted(list[i]) {
			return &list[i]
		}
	}
	return nil
}

func value(name string, s *metrics.Sample) analysis.Value {
	v := analysis.Value{Name: name}
	if s.Reason == "" {
		v.Value = new(s.Value)
	}
	return v
}

// arm counts what is bad: the rest, where what was counted is good.
func arm(a analysis.Variant, more bool) analysis.Variant {
	if more {
		a.Failures = a.Requests - a.Failures
	}
	return a
}
