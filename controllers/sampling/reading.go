// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// skew is how far ahead the clock of who measures may be.
const skew = 5 * time.Second

// reading is what the newest TrafficMetrics say of one split.
type reading struct {
	start, end time.Time
	arms       map[string]analysis.Variant
}

// readings sorts the items of a list by the split that they are of; ReplicaSets are arms of
// the split "" of their namespace. What can't be read is left out, so that it is missing.
func readings(items []metricsv1.TrafficMetrics, resource string) map[types.NamespacedName]reading {
	out := map[types.NamespacedName]reading{}
	sides := map[backendOf]metricsv1.Side{}
	for i := range items {
		m := &items[i]
		key, ok := keyOf(m, resource)
		arm, counted := armOf(m)
		if !ok || !counted {
			continue
		}
		r := out[key.split]
		end := m.Timestamp.Time
		start := end.Add(-m.Window.Duration)
		switch {
		case r.arms == nil || end.After(r.end):
			// One window for both arms: what is older belongs to another.
			r = reading{start: start, end: end, arms: map[string]analysis.Variant{}}
		case !end.Equal(r.end) || !start.Equal(r.start):
			continue
		}
		if _, known := r.arms[key.backend]; !known || sides[key] != metricsv1.SideClient {
			// Clients know what they sent to the split; servers may have other callers.
			r.arms[key.backend], sides[key] = arm, m.Edge.Side
		}
		out[key.split] = r
	}
	return out
}

type backendOf struct {
	split   types.NamespacedName
	backend string
}

// keyOf is what an item is about.
func keyOf(m *metricsv1.TrafficMetrics, resource string) (key backendOf, ok bool) {
	of := types.NamespacedName{Namespace: m.Resource.Namespace, Name: m.Resource.Name}
	switch {
	case resource == replicaSets:
		return backendOf{types.NamespacedName{Namespace: of.Namespace}, of.Name}, true
	case m.Backend == nil:
		return backendOf{}, false
	}
	return backendOf{of, m.Backend.Name}, true
}

// armOf reads the counts of an item that is the total of one version.
func armOf(m *metricsv1.TrafficMetrics) (analysis.Variant, bool) {
	other := m.Edge.Resource
	total := other == nil || other.Kind == "" && other.Name == "" && other.Namespace == ""
	if !total || m.Window.Duration <= 0 || m.Edge.Direction == metricsv1.DirectionTo {
		return analysis.Variant{}, false
	}
	success, known := counted(m, metricsv1.MetricSuccessCount)
	failure, alsoKnown := counted(m, metricsv1.MetricFailureCount)
	arm := analysis.Variant{Requests: success + failure, Failures: failure}
	return arm, known && alsoKnown && arm.Validate() == nil
}

// counted reads a count, which a store may have estimated, to the nearest whole number.
func counted(m *metricsv1.TrafficMetrics, name string) (int64, bool) {
	for i := range m.Metrics {
		if m.Metrics[i].Name != name {
			continue
		}
		v := m.Metrics[i].Value.AsApproximateFloat64()
		return int64(math.Round(v)), v >= 0 && v <= analysis.MaxCount
	}
	return 0, false
}

// window makes a window of a reading, or says why it gives none.
//
//	the metrics                              then
//	are not there, or lack a version         NoData: that is not zero
//	end where the previous window ended      nothing new
//	end two windows ago                      Gap: the source does not measure any more
//	begin before the previous window ended   OutOfOrder: nothing is counted twice
//	cover more than a minute                 Gap
//	begin before the weight was live         WeightChanging
//
// A store knows what its scrapers saw, which is up to half a window old: so much later
// than the weight a window has to begin.
func (t *split) window(r reading, found bool, now time.Time) (analysis.Window, analysis.Reason, string) {
	w := analysis.Window{Start: r.start, End: r.end, Weight: t.weight.Percent}
	if !found {
		return w, analysis.ReasonNoData, t.missing()
	}
	for name, arm := range map[string]*analysis.Variant{t.Stable: &w.Stable, t.Canary: &w.Canary} {
		var known bool
		if *arm, known = r.arms[name]; !known {
			return w, analysis.ReasonNoData, fmt.Sprintf("the TrafficMetrics API has no metrics of the %s %q", t.part(), name)
		}
	}
	reason, message := t.place(r, now)
	if reason == "" && !r.end.Equal(t.ended) && w.Validate() != nil {
		return w, analysis.ReasonNoData, "the TrafficMetrics contradict themselves"
	}
	return w, reason, message
}

// missing says that nothing is measured of either version.
func (t *split) missing() string {
	if t.Split == "" {
		return "the TrafficMetrics API has no metrics of the ReplicaSets yet; if requests are sent, give serin metrics a source that measures pods, such as a mesh"
	}
	return "the TrafficMetrics API has no metrics of the TrafficSplit yet; if requests are sent, see the log of serin metrics"
}

// part is what a version is by what was measured.
func (t *split) part() string {
	if t.Split == "" {
		return "ReplicaSet"
	}
	return "backend"
}

// place says why the time of a reading gives no window.
func (t *split) place(r reading, now time.Time) (analysis.Reason, string) {
	length := r.end.Sub(r.start)
	switch {
	case r.end.After(now.Add(skew)):
		return analysis.ReasonOutOfOrder, "the TrafficMetrics are from the future; synchronise the clocks of the cluster's nodes"
	case now.Sub(r.end) > 2*length+skew:
		return analysis.ReasonGap, "the newest TrafficMetrics are from " + r.end.UTC().Format(time.RFC3339)
	case r.end.Equal(t.ended):
		return t.health.Reason, t.health.Message
	case r.start.Before(t.ended):
		return analysis.ReasonOutOfOrder, ""
	case length > analysis.MaxGap:
		return analysis.ReasonGap, fmt.Sprintf("the window of the TrafficMetrics, %s, is longer than a minute; shorten it", length)
	case t.weight.Since.IsZero() || r.start.Add(-length/2).Before(t.weight.Since):
		return analysis.ReasonWeightChanging, ""
	}
	return "", ""
}
