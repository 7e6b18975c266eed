// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/judge"
)

func TestConfigMistakesAreNamedWithTheirFixAndNeverPass(t *testing.T) {
	latency := judge.MaxLatency(.99, time.Second)
	limit := func(change func(*judge.Limit)) func(*judge.Config) {
		return func(c *judge.Config) {
			l := latency
			change(&l)
			c.Limits = []judge.Limit{l}
		}
	}
	value := func(change func(*judge.Limit)) func(*judge.Config) {
		return func(c *judge.Config) {
			l := judge.ValueBetween("queue", 0, 1)
			change(&l)
			c.Limits = []judge.Limit{l}
		}
	}
	compare := func(m judge.Comparison) func(*judge.Config) {
		return func(c *judge.Config) { c.Comparisons = []judge.Comparison{m} }
	}
	for _, tt := range []struct {
		name   string
		change func(*judge.Config)
		want   string
	}{
		{"nothing wrong", func(*judge.Config) {}, ""},
		{"nothing wrong with limits", func(c *judge.Config) {
			c.Limits = []judge.Limit{judge.MinSuccessRate(.99), latency, judge.MaxLatency(.5, time.Second)}
		}, ""},
		{"nothing wrong with metrics and numbers", func(c *judge.Config) {
			c.Comparisons = comparing("a", "b").Comparisons
			c.Limits = []judge.Limit{judge.ValueBetween("a", 0, 0), judge.ValueBetween("b", 0, math.Inf(1))}
		}, ""},
		{"no false rollback ever", func(c *judge.Config) { c.MaxFalseRollback = 0 }, "maxFalseRollback: 0; give a probability above 0 and at most 0.5, such as 0.01"},
		{"a NaN", func(c *judge.Config) { c.MaxFalseRollback = math.NaN() }, "maxFalseRollback: NaN; give a probability above 0 and at most 0.5, such as 0.01"},
		{"no tolerance", func(c *judge.Config) { c.Tolerance = 0 }, "tolerance: 0; give a fraction above 0 and at most 0.5, such as 0.005"},
		{"an infinite tolerance", func(c *judge.Config) { c.Tolerance = math.Inf(1) }, "tolerance: +Inf; give a fraction above 0 and at most 0.5, such as 0.005"},
		{"an impossible usual rate", func(c *judge.Config) { c.UsualFailureRate = 2 }, "usualFailureRate: 2; give a fraction above 0 and at most 0.5, such as 0.001"},
		{"no requests", func(c *judge.Config) { c.MinRequests = 0 }, "minRequests: 0; give at least 1"},
		{"no freshness", func(c *judge.Config) { c.StaleAfter = 0 }, "staleAfter: 0s; give a duration above 0, such as 20s"},
		{"an endless start-up", func(c *judge.Config) { c.Startup.For = time.Hour }, "startup.for: 1h0m0s; give 0 to 10m0s"},
		{"a start-up that tolerates everything", func(c *judge.Config) { c.Startup.Tolerate = 1 }, "startup.tolerate: 1; give a fraction from 0 to 0.9"},
		{"too many limits", func(c *judge.Config) {
			for i := range judge.MaxLimits + 1 {
				c.Limits = append(c.Limits, judge.MaxLatency(.99, time.Duration(i+1)*time.Second))
			}
		}, "limits: 9; give at most 8"},
		{"a bad promotion for certain", func(c *judge.Config) { c.MaxBadPromotion = .6 }, "maxBadPromotion: 0.6; give a probability up to 0.5, such as 0.01, or 0 to promote none early"},
		{"a negative time of evidence", func(c *judge.Config) { c.MinEvidence = -1 }, "minEvidence: -1ns; give a duration that is not negative, such as 30s"},
		{"a weight that is no number", func(c *judge.Config) { c.LatencyWeight = math.NaN() }, "latencyWeight: NaN; give 0 to 100, where failures weigh 1"},
		{"clusters of less than one request", func(c *judge.Config) { c.MaxCorrelatedFailures = .5 }, "maxCorrelatedFailures: 0.5; give 1 to 1e+06 requests, or 0 to fit it"},
		{"an impossible dispersion", func(c *judge.Config) { c.Dispersion.Total.Squares = math.Inf(1) }, "dispersion: impossible values; give what an earlier release measured, or nothing"},
		{"expectations without counts", func(c *judge.Config) { c.Dispersion.Total.Expected = 1 }, "dispersion: impossible values; give what an earlier release measured, or nothing"},
		{"a comparison without a name", compare(judge.Comparison{Weight: 1, Tolerance: .01}), `comparisons[0].name: ""; give 1 to 63 characters`},
		{"a comparison without a weight", compare(judge.Comparison{Name: "a", Tolerance: .01}), "comparisons[0].weight: 0; give more than 0 and at most 100"},
		{"a comparison without a tolerance", compare(judge.Comparison{Name: "a", Weight: 1}), "comparisons[0].tolerance: 0; give a fraction above 0 and at most 0.5, such as 0.005"},
		{"the same comparison twice", func(c *judge.Config) { c.Comparisons = comparing("a", "a").Comparisons }, `comparisons[1].name: "a" is there twice; give each metric once`},
		{"too many comparisons", func(c *judge.Config) {
			c.Comparisons = comparing("a", "b", "c", "d", "e", "f", "g", "h", "i").Comparisons
		}, "comparisons: 9; give at most 8"},
		{"a number without a name", value(func(l *judge.Limit) { l.Name = "" }), `limits[0].name: ""; give 1 to 63 characters`},
		{"a number without bounds", value(func(l *judge.Limit) { l.Low, l.High = math.Inf(-1), math.Inf(1) }), "limits[0].low, high: -Inf, +Inf; give numbers of which low is not above high, and an infinity for at most one of them"},
		{"a number between NaN and 1", value(func(l *judge.Limit) { l.Low = math.NaN() }), "limits[0].low, high: NaN, 1; give numbers of which low is not above high, and an infinity for at most one of them"},
		{"a number that may be as old as it likes", value(func(l *judge.Limit) { l.StaleAfter = 0 }), "limits[0].staleAfter: 0s; give a duration above 0, such as 5m"},
		{"a number with a quantile", value(func(l *judge.Limit) { l.Quantile = .5 }), "limits[0].min, quantile, max: not for metric Value; give low and high"},
		{"a latency with a name", limit(func(l *judge.Limit) { l.Name = "x" }), "limits[0].name, low, high, staleAfter: only for metric Value; remove them"},
		{"the same limit twice", func(c *judge.Config) { c.Limits = []judge.Limit{latency, latency} }, "limits[1]: the same as an earlier one; remove it"},
		{"an unknown metric", limit(func(l *judge.Limit) { l.Metric = "Errors" }), `limits[0].metric: "Errors"; give SuccessRate, Latency or Value`},
		{"a success rate in percent", func(c *judge.Config) { c.Limits = []judge.Limit{judge.MinSuccessRate(99)} }, "limits[0].min: 99; give a fraction above 0 and at most 1, such as 0.99"},
		{"a success rate with a quantile", limit(func(l *judge.Limit) { l.Metric, l.Min = judge.SuccessRate, .9 }), "limits[0].quantile, max: only for metric Latency; remove them"},
		{"a latency with a rate", limit(func(l *judge.Limit) { l.Min = .9 }), "limits[0].min: only for metric SuccessRate; remove it"},
		{"a quantile in percent", limit(func(l *judge.Limit) { l.Quantile = 99 }), "limits[0].quantile: 99; give a fraction between 0 and 1, such as 0.99"},
		{"the maximum as a quantile", limit(func(l *judge.Limit) { l.Quantile = 1 }), "limits[0].quantile: 1; give a fraction between 0 and 1, such as 0.99"},
		{"no latency", limit(func(l *judge.Limit) { l.Max = 0 }), "limits[0].max: 0s; give a duration above 0, such as 500ms"},
		{"no samples", limit(func(l *judge.Limit) { l.MinSamples = 0 }), "limits[0].minSamples: 0; give at least 1"},
		{"no failure limit", limit(func(l *judge.Limit) { l.ConsecutiveFailureLimit = 0 }), "limits[0].consecutiveFailureLimit: 0; give 1 to 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := plain()
			tt.change(&c)
			got := ""
			if err := c.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
			if tt.want == "" {
				return
			}
			s, r := c.Next(judge.State{}, window(0, 50, variant(1e6, 0), variant(1e6, 0)))
			if r.Verdict != judge.Inconclusive || r.Reason != judge.ReasonInvalidConfig || s != (judge.State{}) {
				t.Errorf("Next = %s (%s), want Inconclusive (InvalidConfig) and an unchanged state", r.Verdict, r.Reason)
			}
			if r := c.Assess(s, epoch); r.Reason != judge.ReasonInvalidConfig || math.IsInf(r.Threshold, 0) || math.IsNaN(r.Threshold) {
				t.Errorf("Assess = %s, threshold %v; want InvalidConfig and a finite number", r.Reason, r.Threshold)
			}
		})
	}
}

func TestSeveralConfigMistakesAreAllReported(t *testing.T) {
	const want = `maxFalseRollback: 0; give a probability above 0 and at most 0.5, such as 0.01
tolerance: 0; give a fraction above 0 and at most 0.5, such as 0.005
usualFailureRate: 0; give a fraction above 0 and at most 0.5, such as 0.001
minRequests: 0; give at least 1
staleAfter: 0s; give a duration above 0, such as 20s`
	if diff := cmp.Diff(want, judge.Config{}.Validate().Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
