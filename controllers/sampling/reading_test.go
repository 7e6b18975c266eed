// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

var (
	epoch   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	website = types.NamespacedName{Namespace: "shop", Name: "website"}
)

// second is a time after the epoch.
func second(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

// item is that of a backend for the 30 seconds before a time.
func item(end time.Time, backend, success, failure string, changes ...func(*metricsv1.TrafficMetrics)) metricsv1.TrafficMetrics {
	m := metricsv1.TrafficMetrics{
		Resource:  corev1.ObjectReference{Kind: "TrafficSplit", Namespace: website.Namespace, Name: website.Name},
		Edge:      metricsv1.Edge{Direction: metricsv1.DirectionFrom, Side: metricsv1.SideClient, Resource: &corev1.ObjectReference{}},
		Backend:   &metricsv1.Backend{Apex: "website", Name: backend},
		Timestamp: metav1.NewTime(end), Window: metav1.Duration{Duration: 30 * time.Second},
	}
	for name, value := range map[string]string{metricsv1.MetricSuccessCount: success, metricsv1.MetricFailureCount: failure} {
		if value != "" {
			m.Metrics = append(m.Metrics, metricsv1.Metric{Name: name, Value: resource.MustParse(value)})
		}
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func both(end time.Time) []metricsv1.TrafficMetrics {
	return []metricsv1.TrafficMetrics{item(end, "website-stable", "90", "1"), item(end, "website-canary", "8", "2")}
}

func TestAWindowIsMadeOnlyOfMetricsThatAreKnown(t *testing.T) {
	server := func(m *metricsv1.TrafficMetrics) { m.Edge.Side = metricsv1.SideServer }
	since := analysis.Weight{Percent: 10, Since: second(0)}
	for _, tt := range []struct {
		name   string
		items  []metricsv1.TrafficMetrics
		weight analysis.Weight
		ended  time.Time
		now    time.Time

		want    analysis.Window
		reason  analysis.Reason
		message string
	}{
		{name: "both versions", items: both(second(60)), want: analysis.Window{Canary: analysis.Variant{Requests: 10, Failures: 2}, Stable: analysis.Variant{Requests: 91, Failures: 1}}},
		{name: "after the previous window", items: both(second(60)), ended: second(30), want: analysis.Window{Canary: analysis.Variant{Requests: 10, Failures: 2}, Stable: analysis.Variant{Requests: 91, Failures: 1}}},
		{name: "estimates are rounded", items: []metricsv1.TrafficMetrics{item(second(60), "website-stable", "90600m", "1"), item(second(60), "website-canary", "0", "400m")}, want: analysis.Window{Stable: analysis.Variant{Requests: 92, Failures: 1}}},
		{name: "clients know better than servers", items: append([]metricsv1.TrafficMetrics{item(second(60), "website-canary", "500", "0", server)}, append(both(second(60)), item(second(60), "website-stable", "500", "0", server))...), want: analysis.Window{Canary: analysis.Variant{Requests: 10, Failures: 2}, Stable: analysis.Variant{Requests: 91, Failures: 1}}},
		{name: "nothing", reason: analysis.ReasonNoData, message: "the TrafficMetrics API has no metrics of the TrafficSplit yet; if requests are sent, see the log of serin metrics"},
		{name: "no item for the canary", items: both(second(60))[:1], reason: analysis.ReasonNoData, message: `the TrafficMetrics API has no metrics of the backend "website-canary"`},
		{name: "an older item for the canary", items: []metricsv1.TrafficMetrics{both(second(60))[0], both(second(30))[1]}, reason: analysis.ReasonNoData, message: `the TrafficMetrics API has no metrics of the backend "website-canary"`},
		{name: "no failures known", items: []metricsv1.TrafficMetrics{both(second(60))[0], item(second(60), "website-canary", "8", "")}, reason: analysis.ReasonNoData, message: `the TrafficMetrics API has no metrics of the backend "website-canary"`},
		{name: "less than no requests", items: []metricsv1.TrafficMetrics{both(second(60))[0], item(second(60), "website-canary", "-8", "1")}, reason: analysis.ReasonNoData, message: `the TrafficMetrics API has no metrics of the backend "website-canary"`},
		{name: "one edge is not all", items: []metricsv1.TrafficMetrics{both(second(60))[0], item(second(60), "website-canary", "8", "2", func(m *metricsv1.TrafficMetrics) { m.Edge.Resource.Name = "load" })}, reason: analysis.ReasonNoData, message: `the TrafficMetrics API has no metrics of the backend "website-canary"`},
		{name: "the same window again", items: both(second(60)), ended: second(60)},
		{name: "a window that overlaps", items: both(second(60)), ended: second(31), reason: analysis.ReasonOutOfOrder},
		{name: "old metrics", items: both(second(60)), now: second(130), reason: analysis.ReasonGap, message: "the newest TrafficMetrics are from 2026-03-01T12:01:00Z"},
		{name: "metrics of the future", items: both(second(60)), now: second(50), reason: analysis.ReasonOutOfOrder, message: "the TrafficMetrics are from the future; synchronise the clocks of the cluster's nodes"},
		{name: "a window with two weights", items: both(second(60)), weight: analysis.Weight{Percent: 10, Since: second(31)}, reason: analysis.ReasonWeightChanging},
		{name: "a window in which a scraper may still have seen the previous weight", items: both(second(60)), weight: analysis.Weight{Percent: 10, Since: second(16)}, reason: analysis.ReasonWeightChanging},
		{name: "a weight that is changing", items: both(second(60)), weight: analysis.Weight{Percent: 10}, reason: analysis.ReasonWeightChanging},
		{name: "too long a window", items: []metricsv1.TrafficMetrics{
			item(second(120), "website-stable", "1", "1", func(m *metricsv1.TrafficMetrics) { m.Window.Duration = 2 * time.Minute }),
			item(second(120), "website-canary", "1", "1", func(m *metricsv1.TrafficMetrics) { m.Window.Duration = 2 * time.Minute }),
		}, now: second(121), reason: analysis.ReasonGap, message: "the window of the TrafficMetrics, 2m0s, is longer than a minute; shorten it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.weight == (analysis.Weight{}) {
				tt.weight = since
			}
			if tt.now.IsZero() {
				tt.now = second(61)
			}
			s := &split{Subject: analysis.Subject{Split: "website", Stable: "website-stable", Canary: "website-canary"}, weight: tt.weight, ended: tt.ended}
			r, found := readings(tt.items, trafficSplits)[website]
			got, reason, message := s.window(r, found, tt.now)
			if reason != tt.reason || message != tt.message {
				t.Errorf("%q %q", reason, message)
			}
			if tt.want.Stable.Requests == 0 {
				return
			}
			tt.want.Start, tt.want.End, tt.want.Weight = second(30), second(60), 10
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
