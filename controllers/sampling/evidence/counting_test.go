// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

func TestWhatCountsTheRequestsWithoutARouter(t *testing.T) {
	number := resolve.Metric{Name: "queue"}
	compare := resolve.Metric{Name: "errors", Compare: &resolve.Comparison{}}
	traffic := resolve.Metric{Name: "rate", Provider: v1alpha1.MetricProvider{Type: v1alpha1.ProviderTrafficMetrics}}
	tried := compare
	tried.DryRun = true
	for name, test := range map[string]struct {
		analysis *v1alpha1.Analysis
		metrics  []resolve.Metric
		want     Counting
	}{
		"no analysis":                      {nil, nil, CountingNothing},
		"no metric":                        {&v1alpha1.Analysis{}, nil, CountingReplicaSets},
		"a comparison":                     {&v1alpha1.Analysis{}, []resolve.Metric{number, compare}, CountingComparison},
		"a comparison that is tried out":   {&v1alpha1.Analysis{}, []resolve.Metric{tried}, CountingReplicaSets},
		"a comparison and traffic metrics": {&v1alpha1.Analysis{}, []resolve.Metric{compare, traffic}, CountingReplicaSets},
		"numbers":                          {&v1alpha1.Analysis{}, []resolve.Metric{number}, CountingValues},
		"numbers and a limit on requests":  {&v1alpha1.Analysis{MinSuccessRate: "99%"}, []resolve.Metric{number}, CountingReplicaSets},
		"numbers and a limit on latency":   {&v1alpha1.Analysis{MaxLatency: []v1alpha1.LatencyLimit{{}}}, []resolve.Metric{number}, CountingReplicaSets},
	} {
		if got := CountingOf(test.analysis, test.metrics); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTheComparisonThatCountsTheRequestsIsNoComparisonBesideThem(t *testing.T) {
	tolerance := 0.03
	list := []resolve.Metric{
		{Name: "tried", DryRun: true, Compare: &resolve.Comparison{}},
		{Name: "errors", Interval: 20 * time.Second, Compare: &resolve.Comparison{Tolerance: &tolerance}},
		{Name: "orders", Interval: 30 * time.Second, Compare: &resolve.Comparison{}},
	}
	got := Of(list, 0.005).Counted(CountingComparison, list)
	if len(got.Comparisons) != 1 || got.Comparisons[0].Name != "orders" || got.StaleAfter != time.Minute || got.Tolerance != tolerance || got.ValuesOnly {
		t.Errorf("%+v", got)
	}
	if got := Of(list, 0.005).Counted(CountingReplicaSets, list); len(got.Comparisons) != 2 || got.ValuesOnly || got.StaleAfter != 0 {
		t.Errorf("counted elsewhere: %+v", got)
	}
	if got := Of(nil, 0.005).Counted(CountingValues, nil); !got.ValuesOnly {
		t.Errorf("numbers: %+v", got)
	}
}

func TestWhatTheComparisonCountsIsTheTraffic(t *testing.T) {
	window := func(end int, bad int64) metrics.Window {
		return metrics.Window{Known: at(end + 1), Window: analysis.Window{
			Start: at(end - 10), End: at(end), Weight: 20,
			Canary: analysis.Variant{Requests: 10, Failures: bad}, Stable: analysis.Variant{Requests: 40, Failures: 1},
		}}
	}
	series := []metrics.Series{
		queue(number(12, 3)),
		{Metric: resolve.Metric{Name: "errors", Compare: &resolve.Comparison{}}, Windows: []metrics.Window{window(10, 2), window(20, 3)}},
		{Metric: resolve.Metric{Name: "orders", Compare: &resolve.Comparison{More: true}}, Windows: []metrics.Window{window(15, 9)}},
	}
	want := []analysis.Window{window(20, 3).Window}
	got, rest := Traffic(series, at(10))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(rest) != 2 || rest[0].Metric.Name != "queue" || rest[1].Metric.Name != "orders" || len(series) != 3 {
		t.Errorf("rest %+v", rest)
	}
	if got, _ := Traffic(series[2:], at(0)); len(got) != 1 || got[0].Canary.Failures != 1 || got[0].Stable.Failures != 39 {
		t.Errorf("what is counted as good: %+v", got)
	}
	if got, rest := Traffic(series[:1], at(0)); got != nil || len(rest) != 1 {
		t.Error("a number is no traffic")
	}
}
