// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// Counting is what counts the requests of each version where no router does.
type Counting string

// What counts them.
//
//	spec.analysis                                | then
//	---------------------------------------------+------------
//	is not set                                   | Nothing
//	has a metric of the provider trafficMetrics  | ReplicaSets
//	has a metric that is compared                | Comparison
//	has numbers, and no limit on requests        | Values
//	otherwise                                    | ReplicaSets
const (
	// CountingNothing: nothing is judged.
	CountingNothing Counting = ""
	// CountingComparison: the first metric that is compared counts them.
	CountingComparison Counting = "Comparison"
	// CountingValues: nothing does, and the user's numbers are all that is judged.
	CountingValues Counting = "Values"
	// CountingReplicaSets: the TrafficMetrics of the versions' ReplicaSets do.
	CountingReplicaSets Counting = "ReplicaSets"
)

// CountingOf is what counts the requests, by an analysis and its metrics.
func CountingOf(a *v1alpha1.Analysis, list []resolve.Metric) Counting {
	has := func(is func(*resolve.Metric) bool) bool {
		return slices.ContainsFunc(list, func(m resolve.Metric) bool { return !m.DryRun && is(&m) })
	}
	switch {
	case a == nil:
		return CountingNothing
	case has(func(m *resolve.Metric) bool { return m.Provider.Type == v1alpha1.ProviderTrafficMetrics }):
		return CountingReplicaSets
	case has(compared):
		return CountingComparison
	case has(func(*resolve.Metric) bool { return true }) && a.MinSuccessRate == "" && len(a.MaxLatency) == 0:
		return CountingValues
	}
	return CountingReplicaSets
}

func compared(m *resolve.Metric) bool { return m.Compare != nil }

// longestStale is how old a number may be at most: a Job's counts as long as its step lasts.
const longestStale = 1000 * 24 * time.Hour

// Counted are the settings where no router counts the requests. The metric that does is the
// traffic, and no comparison beside it: its failures count once.
func (s Settings) Counted(by Counting, list []resolve.Metric) Settings {
	switch by {
	case CountingComparison:
		at := slices.IndexFunc(list, func(m resolve.Metric) bool { return !m.DryRun && compared(&m) })
		s.StaleAfter, s.Tolerance = staleIntervals*list[at].Interval, s.Comparisons[0].Tolerance
		s.Comparisons = s.Comparisons[1:]
	case CountingValues:
		s.ValuesOnly = true
	case CountingNothing, CountingReplicaSets:
	}
	return s
}

// Traffic are the windows of the first metric that is compared since the last one that was
// judged: what it counts is the traffic.
func Traffic(series []metrics.Series, judged time.Time) (out []analysis.Window) {
	at := slices.IndexFunc(series, func(s metrics.Series) bool { return !s.Metric.DryRun && compared(&s.Metric) })
	if at < 0 {
		return nil
	}
	more := series[at].Metric.Compare.More
	for _, w := range series[at].Windows {
		if w.End.After(judged) {
			w.Canary, w.Stable = arm(w.Canary, more), arm(w.Stable, more)
			out = append(out, w.Window)
		}
	}
	return out
}

// Rest are the series but for that of Traffic.
func Rest(series []metrics.Series) []metrics.Series {
	at := slices.IndexFunc(series, func(s metrics.Series) bool { return !s.Metric.DryRun && compared(&s.Metric) })
	if at < 0 {
		return series
	}
	return slices.Delete(slices.Clone(series), at, at+1)
}
