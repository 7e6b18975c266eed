// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/metrics"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

var epoch = time.Unix(1e9, 0).UTC()

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// windows are of five seconds each, from the beginning on.
func windows(n int) (out []analysis.Window) {
	for i := range n {
		out = append(out, analysis.Window{Start: at(5 * i), End: at(5*i + 5), Weight: 10})
	}
	return out
}

func number(known int, value float64) metrics.Sample {
	return metrics.Sample{At: at(known - 1), Known: at(known), Value: value}
}

func missing(known int, why source.Reason) metrics.Sample {
	return metrics.Sample{At: at(known - 1), Known: at(known), Reason: why}
}

func queue(samples ...metrics.Sample) metrics.Series {
	return metrics.Series{Metric: resolve.Metric{Name: "queue"}, Samples: samples}
}

func TestNumbersBelongToTheWindowInWhichTheyBecameKnown(t *testing.T) {
	none := analysis.Value{Name: "queue"}
	is := func(v float64) analysis.Value { return analysis.Value{Name: "queue", Value: &v} }
	for _, test := range []struct {
		name    string
		samples []metrics.Sample
		judged  time.Time
		// liveSince is since when the weight was.
		liveSince time.Time
		want      [3][]analysis.Value
	}{
		{name: "one in each", samples: []metrics.Sample{number(1, 1), number(6, 2), number(15, 3)}, want: [3][]analysis.Value{{is(1)}, {is(2)}, {is(3)}}},
		{name: "one at the end of a window", samples: []metrics.Sample{number(5, 1)}, want: [3][]analysis.Value{{is(1)}}},
		{name: "one that is not known yet", samples: []metrics.Sample{number(16, 1)}},
		{name: "one that was due and gave nothing", samples: []metrics.Sample{missing(7, source.Timeout)}, want: [3][]analysis.Value{{}, {none}}},
		{name: "one that takes its time", samples: []metrics.Sample{missing(7, source.Pending)}},
		{name: "two in one window", samples: []metrics.Sample{number(6, 1), number(9, 2)}, want: [3][]analysis.Value{{}, {is(2)}}},
		{name: "one that was judged before", samples: []metrics.Sample{number(-3, 1)}, judged: at(0)},
		{name: "one from before the weight was live", samples: []metrics.Sample{number(6, 1)}, liveSince: at(7), want: [3][]analysis.Value{{}, {is(1)}}},
		{name: "one about the time before, which came later", samples: []metrics.Sample{{At: at(4), Known: at(6), Value: 1}}, liveSince: at(5)},
		{name: "one between the windows", samples: []metrics.Sample{number(-3, 1)}, judged: at(-5), want: [3][]analysis.Value{{is(1)}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			given := windows(3)
			got := Attach(given, []metrics.Series{queue(test.samples...)}, test.judged, test.liveSince)
			for i := range got {
				if diff := cmp.Diff(test.want[i], got[i].Values); diff != "" && len(test.want[i])+len(got[i].Values) > 0 {
					t.Errorf("window %d (-want +got):\n%s", i, diff)
				}
			}
			if diff := cmp.Diff(windows(3), given); diff != "" {
				t.Errorf("the windows of the collector were changed:\n%s", diff)
			}
		})
	}
}

// A window is judged again when its verdict could not be written.
func TestWindowsThatAreJudgedLaterGetTheSameNumbers(t *testing.T) {
	series := []metrics.Series{queue(number(1, 1), number(4, 2), number(8, 3), missing(13, source.NoData))}
	whole := Attach(windows(3), series, time.Time{}, time.Time{})
	rest := Attach(windows(3)[1:], series, at(5), time.Time{})
	if diff := cmp.Diff(whole[1:], rest); diff != "" {
		t.Errorf("(-at once +later):\n%s", diff)
	}
}

func TestCountersAreComparedAndTurnedRoundWhereMoreIsBetter(t *testing.T) {
	window := metrics.Window{Known: at(7), Window: analysis.Window{
		Start: at(-20), End: at(6), Canary: analysis.Variant{Requests: 10, Failures: 3}, Stable: analysis.Variant{Requests: 100, Failures: 1},
	}}
	for _, more := range []bool{false, true} {
		m := resolve.Metric{Name: "orders", Compare: &resolve.Comparison{More: more}}
		got := Attach(windows(2), []metrics.Series{{Metric: m, Windows: []metrics.Window{window}}}, time.Time{}, time.Time{})
		want := analysis.Sample{Name: "orders", Start: at(-20), Canary: analysis.Variant{Requests: 10, Failures: 3}, Stable: analysis.Variant{Requests: 100, Failures: 1}}
		if more {
			want.Canary.Failures, want.Stable.Failures = 7, 99
		}
		if len(got[0].Samples) != 0 || len(got[1].Samples) != 1 {
			t.Fatalf("samples %v and %v", got[0].Samples, got[1].Samples)
		}
		if diff := cmp.Diff(want, got[1].Samples[0]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhatIsOnlyTriedOutHasNoPart(t *testing.T) {
	series := queue(number(1, 1))
	series.Metric.DryRun = true
	if got := Attach(windows(1), []metrics.Series{series}, time.Time{}, time.Time{}); len(got[0].Values) != 0 {
		t.Errorf("values %v", got[0].Values)
	}
	if s := Of([]resolve.Metric{series.Metric}, .01); len(s.Limits)+len(s.Comparisons) != 0 {
		t.Errorf("settings %+v", s)
	}
}

func TestSettings(t *testing.T) {
	got := Of([]resolve.Metric{
		{Name: "queue", Max: new(3.0), Interval: 10 * time.Minute, ConsecutiveFailureLimit: 2, MinSamples: 4},
		{Name: "smoke", Min: new(1.0), Interval: 5 * time.Second, ConsecutiveFailureLimit: 1, MinSamples: 1},
		{Name: "once", Min: new(1.0), ConsecutiveFailureLimit: 1, MinSamples: 1, Provider: v1alpha1.MetricProvider{BasicProviders: v1alpha1.BasicProviders{Job: &v1alpha1.JobQuery{}}}},
		{Name: "repeated", Min: new(1.0), Provider: v1alpha1.MetricProvider{BasicProviders: v1alpha1.BasicProviders{Job: &v1alpha1.JobQuery{Repeat: true}}}},
		{Name: "orders", Compare: &resolve.Comparison{Weight: 5}},
		{Name: "errors", Compare: &resolve.Comparison{Weight: 20, Tolerance: new(.02)}},
	}, .005)
	want := Settings{
		Limits: []judge.Limit{
			{Metric: judge.Value, Name: "queue", Low: math.Inf(-1), High: 3, MinSamples: 4, ConsecutiveFailureLimit: 2, StaleAfter: 30 * time.Minute},
			{Metric: judge.Value, Name: "smoke", Low: 1, High: math.Inf(1), MinSamples: 1, ConsecutiveFailureLimit: 1, StaleAfter: judge.DefaultStaleAfter},
			{Metric: judge.Value, Name: "once", Low: 1, High: math.Inf(1), MinSamples: 1, ConsecutiveFailureLimit: 1, StaleAfter: math.MaxInt64},
			{Metric: judge.Value, Name: "repeated", Low: 1, High: math.Inf(1), StaleAfter: judge.DefaultStaleAfter},
		},
		Comparisons: []judge.Comparison{{Name: "orders", Weight: .5, Tolerance: .005}, {Name: "errors", Weight: 2, Tolerance: .02}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumbersCountByThemselvesWhereNoTrafficCanBeMeasured(t *testing.T) {
	tried := queue(number(8, 1))
	tried.Metric.DryRun = true
	compared := metrics.Series{Metric: resolve.Metric{Name: "orders", Compare: &resolve.Comparison{}}, Samples: []metrics.Sample{missing(9, source.NoData)}}
	smoke := metrics.Series{Metric: resolve.Metric{Name: "smoke"}, Samples: []metrics.Sample{number(7, 0), missing(12, source.Pending)}}
	got := KnownSince([]metrics.Series{queue(number(2, 1), number(4, 2), number(6, 3), missing(8, source.Timeout)), smoke, tried, compared}, at(2), at(4))
	want := []analysis.KnownValue{
		{At: at(6), Value: analysis.Value{Name: "queue", Value: new(3.0)}},
		{At: at(7), Value: analysis.Value{Name: "smoke", Value: new(0.0)}},
		{At: at(8), Value: analysis.Value{Name: "queue"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumbersCountFromTheMomentTheWeightIsLiveAndOnce(t *testing.T) {
	live := queue(metrics.Sample{At: at(4), Known: at(6)})
	if got := KnownSince([]metrics.Series{live}, at(5), at(4)); len(got) != 1 {
		t.Errorf("measured as the weight became live: %v", got)
	}
	if got := KnownSince([]metrics.Series{live}, at(6), at(4)); len(got) != 0 {
		t.Errorf("judged before: %v", got)
	}
}
