// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// A canary without requests yet, as in a preview, is judged by the user's numbers.
func TestACanaryThatIsNotCalledPassesByItsNumbersOnly(t *testing.T) {
	value := judge.ValueBetween("smoke", 1, math.Inf(1))
	for _, test := range []struct {
		name   string
		limits []judge.Limit
		value  *float64
		want   judge.Reason
	}{
		{name: "a number within its limit", limits: []judge.Limit{value}, value: new(1.0), want: judge.ReasonNotCalled},
		{name: "a number outside of it", limits: []judge.Limit{value}, value: new(0.0), want: judge.ReasonLimitAtRisk},
		{name: "no number", limits: []judge.Limit{value}, want: judge.ReasonLimitMissing},
		{name: "nothing asked", value: new(1.0), want: judge.ReasonNoTraffic},
		{name: "requests asked too", limits: []judge.Limit{value, judge.MinSuccessRate(.99)}, value: new(1.0), want: judge.ReasonNoTraffic},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := judge.Defaults()
			c.Limits = test.limits
			start := time.Unix(1e9, 0)
			s := judge.State{}.StartStep(start)
			_, r := c.Next(s, analysis.Window{
				Start: start, End: start.Add(5 * time.Second), Stable: analysis.Variant{Requests: 100},
				Values: []analysis.Value{{Name: "smoke", Value: test.value}},
			})
			if passes := test.want == judge.ReasonNotCalled; r.Reason != test.want || (r.Verdict == judge.Pass) != passes {
				t.Errorf("%s: %s", r.Verdict, r.Reason)
			}
		})
	}
}

// Users who match may meet a canary whose weight is 0.
func TestACanaryThatOnlySomeMeetIsCompared(t *testing.T) {
	value := judge.ValueBetween("smoke", 1, math.Inf(1))
	for name, tt := range map[string]struct {
		failures int64
		want     judge.Reason
	}{
		"no worse":  {0, judge.ReasonNotWorse},
		"suspected": {9, judge.ReasonSuspected},
	} {
		c := plain(value)
		_, r := c.Next(judge.State{}, analysis.Window{
			Start: epoch, End: epoch.Add(5 * time.Second), Canary: variant(100, tt.failures), Stable: variant(100, 0),
			Values: []analysis.Value{{Name: "smoke", Value: new(1.0)}},
		})
		if r.Reason != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, r.Reason, r.Explain(), tt.want)
		}
	}
}

// Where the proxies can't be read, a number outside of its limit still fails a canary,
// and one within it passes nothing.
func TestNumbersWithoutTrafficFailAndNeverPass(t *testing.T) {
	c := judge.Defaults()
	c.Limits = []judge.Limit{judge.ValueBetween("errors", math.Inf(-1), 10)}
	start := time.Unix(1e9, 0)
	value := func(x float64) []analysis.Value { return []analysis.Value{{Name: "errors", Value: &x}} }
	s := judge.State{}.StartStep(start)
	for i := range 10 {
		s = c.Values(s, start.Add(time.Duration(i)*time.Minute), value(1))
		if r := c.Assess(s, start.Add(time.Duration(i)*time.Minute)); r.Verdict != judge.Inconclusive {
			t.Fatalf("%s: %s", r.Verdict, r.Reason)
		}
	}
	for i := range judge.DefaultConsecutiveFailureLimit {
		if r := c.Assess(s, start); r.Verdict == judge.Fail {
			t.Fatalf("failed after %d", i)
		}
		s = c.Values(s, start, value(11))
	}
	if r := c.Assess(s, start); r.Verdict != judge.Fail || r.Reason != judge.ReasonLimitMissed {
		t.Errorf("%s: %s", r.Verdict, r.Reason)
	}
	if again := c.Values(s, start, []analysis.Value{{Name: "errors", Value: new(math.NaN())}, {Name: "other"}}); again != s {
		t.Error("a failed canary changed")
	}
}

// Where nothing counts the requests, numbers are all that there is.
func TestNumbersAlonePassWhereNothingCountsTheRequests(t *testing.T) {
	c := judge.Defaults()
	c.ValuesOnly = true
	c.Limits = []judge.Limit{judge.ValueBetween("errors", math.Inf(-1), 10), judge.ValueBetween("queue", math.Inf(-1), 5)}
	start := time.Unix(1e9, 0)
	value := func(name string, x float64) []analysis.Value { return []analysis.Value{{Name: name, Value: &x}} }
	s := judge.State{}.StartStep(start)
	is := func(at time.Time, v judge.Verdict, why judge.Reason) {
		t.Helper()
		if r := c.Assess(s, at); r.Verdict != v || r.Reason != why {
			t.Errorf("%s: %s (%s), want %s", r.Verdict, r.Reason, r.Explain(), why)
		}
	}
	is(start, judge.Inconclusive, judge.ReasonLimitUnmeasured)
	s = c.Values(s, start, value("errors", 1))
	is(start, judge.Inconclusive, judge.ReasonLimitUnmeasured)
	s = c.Values(s, start, value("queue", 1))
	is(start, judge.Pass, judge.ReasonWithinLimits)
	is(start.Add(time.Hour), judge.Inconclusive, judge.ReasonLimitMissing)
	next := s.StartStep(start.Add(time.Second))
	if r := c.Assess(next, start.Add(time.Second)); r.Verdict != judge.Inconclusive {
		t.Errorf("numbers of the step before pass the next one: %s", r.Reason)
	}
	s = c.Values(s, start, value("queue", 6))
	is(start, judge.Inconclusive, judge.ReasonLimitAtRisk)
	s = c.Values(s, start, []analysis.Value{{Name: "errors"}})
	c.Limits = c.Limits[:1]
	is(start, judge.Inconclusive, judge.ReasonLimitMissing)
	c.Limits = nil
	is(start, judge.Inconclusive, judge.ReasonMissingData)
}
