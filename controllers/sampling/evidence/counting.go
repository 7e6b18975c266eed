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
	case has(counts):
		return CountingComparison
	case has(func(*resolve.Metric) bool { return true }) && a.MinSuccessRate == "" && len(a.MaxLatency) == 0:
		return CountingValues
	}
	return CountingReplicaSets
}

// counts reports whether a metric is compared, and not only tried out.
func counts(m *resolve.Metric) bool { return !m.DryRun && m.Compare != nil }

// Counted are the settings where no router counts the requests. The metric that does is the
// traffic, and no comparison beside it: its failures count once.
func (s Settings) Counted(by Counting, list []resolve.Metric) Settings {
	switch by {
	case CountingComparison:
		at := slices.IndexFunc(list, func(m resolve.Metric) bool { return counts(&m) })
		s.StaleAfter, s.Tolerance = staleIntervals*list[at].Interval, s.Comparisons[0].Tolerance
		s.Comparisons = s.Comparisons[1:]
	case CountingValues:
		s.ValuesOnly = true
	case CountingNothing, CountingReplicaSets:
	}
	return s
}

// Traffic are the windows of the first metric that is compared since the last one that was
// judged: what it counts is the traffic. The rest are the series but for that one.
func Traffic(series []metrics.Series, judged time.Time) (windows []analysis.Window, rest []metrics.Series) {
	at := slices.IndexFunc(series, func(s metrics.Series) bool { return counts(&s.Metric) })
	if at < 0 {
		return nil, series
	}
	more := series[at].Metric.Compare.More
	for _, w := range series[at].Windows {
		if w.End.After(judged) {
			w.Canary, w.Stable = arm(w.Canary, more), arm(w.Stable, more)
			windows = append(windows, w.Window)
		}
	}
	return windows, slices.Delete(slices.Clone(series), at, at+1)
}
