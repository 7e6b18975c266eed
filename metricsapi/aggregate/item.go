// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// item is the sum of a resource for one edge in the form of the API.
func item(of ref, e metricsv1.Edge, s *sum, over *observe.Snapshot) metricsv1.TrafficMetrics {
	return metricsv1.TrafficMetrics{
		TypeMeta:   metav1.TypeMeta{Kind: "TrafficMetrics", APIVersion: metricsv1.GroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{Name: of.name.Name, Namespace: of.name.Namespace},
		Resource:   *of.object(),
		Edge:       e,
		Timestamp:  metav1.NewTime(over.End),
		Window:     metav1.Duration{Duration: over.End.Sub(over.Start)},
		Metrics:    values(s),
	}
}

// values are the metrics in the order of the text. Those that are not known are left out.
func values(s *sum) []metricsv1.Metric {
	var metrics []metricsv1.Metric
	for _, q := range []struct {
		name  string
		share float64
	}{{metricsv1.MetricP99Latency, 0.99}, {metricsv1.MetricP90Latency, 0.90}, {metricsv1.MetricP50Latency, 0.50}} {
		if v, known := quantile(s.latency, q.share); known {
			metrics = append(metrics, metricsv1.Metric{Name: q.name, Unit: metricsv1.UnitSeconds, Value: seconds(v)})
		}
	}
	return append(metrics,
		metricsv1.Metric{Name: metricsv1.MetricSuccessCount, Value: count(s.success)},
		metricsv1.Metric{Name: metricsv1.MetricFailureCount, Value: count(s.failure)})
}

const (
	micro = 1e6
	milli = 1e3
	// exact is the number up to which a float64 tells whole numbers apart.
	exact = 1 << 53
)

// seconds are given to the microsecond.
func seconds(v float64) resource.Quantity {
	return *resource.NewScaledQuantity(int64(math.Round(min(max(v, 0), exact/micro)*micro)), resource.Micro)
}

// count is whole, or given to the thousandth where a store estimates it.
func count(v float64) resource.Quantity {
	if v = min(max(v, 0), exact); v == math.Trunc(v) || v > exact/milli {
		return *resource.NewQuantity(int64(v), resource.DecimalSI)
	}
	return *resource.NewMilliQuantity(int64(math.Round(v*milli)), resource.DecimalSI)
}

// order sorts items as observe.Answer says. Backends of a split stay in its order.
func order(items []metricsv1.TrafficMetrics) {
	slices.SortStableFunc(items, func(a, b metricsv1.TrafficMetrics) int {
		return cmp.Or(
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Edge.Direction, b.Edge.Direction), cmp.Compare(a.Edge.Side, b.Edge.Side),
			compareEnds(a.Edge.Resource, b.Edge.Resource),
		)
	})
}

func compareEnds(a, b *corev1.ObjectReference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
