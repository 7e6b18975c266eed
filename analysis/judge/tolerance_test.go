// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// average makes windows in which both versions fail exactly as often as their rate.
type average struct {
	perWindow      int64 // requests of the canary
	weight         int32
	base           float64
	i              int
	canary, stable counter
}

type counter struct{ requests, failures int64 }

func (a *average) next() analysis.Window {
	grow := func(t *counter, n int64) analysis.Variant {
		before := *t
		t.requests += n
		t.failures = int64(math.Round(float64(t.requests) * a.base))
		return variant(n, t.failures-before.failures)
	}
	a.i++
	return window(a.i-1, a.weight, grow(&a.canary, a.perWindow), grow(&a.stable, a.perWindow*int64(100-a.weight)/int64(a.weight)))
}

// until counts the canary's requests until enough holds.
func (a *average) until(c judge.Config, enough func(judge.Result) bool) int64 {
	var s judge.State
	for range 20_000 {
		var r judge.Result
		if s, r = c.Next(s, a.next()); enough(r) {
			return a.canary.requests
		}
	}
	return math.MaxInt64
}

// The table of docs/analysis.md.
func TestASmallerToleranceNeedsMoreTraffic(t *testing.T) {
	for _, base := range []float64{.001, .01} {
		lastFound, lastPromoted := int64(math.MaxInt64), int64(math.MaxInt64)
		for _, tolerance := range []float64{.001, .002, .005, .01, .02, .05} {
			c := plain()
			c.Tolerance, c.MinEvidence = tolerance, time.Nanosecond
			found := (&average{perWindow: 50, weight: 10, base: base}).until(c, func(r judge.Result) bool { return r.MinDetectableEffect <= tolerance })
			promoted := (&average{perWindow: 50, weight: 50, base: base}).until(c, func(r judge.Result) bool { return r.MayPromote })
			t.Logf("| %v %% | %v pp | %d | %d |", 100*base, 100*tolerance, found, promoted)
			row := fmt.Sprintf("| %v %% | %v pp | ", 100*base, 100*tolerance)
			wantOnPage(t, row, row+grouped(found)+" | "+grouped(promoted)+" |")
			// A tenth of stable's failures is always forgiven, so that a tolerance of not
			// more than that is below what can be found.
			if tolerance <= .1*base {
				if found != math.MaxInt64 {
					t.Errorf("tolerance %v: found after %d requests, though it is forgiven", tolerance, found)
				}
				continue
			}
			if found > lastFound || promoted > lastPromoted || found == math.MaxInt64 || promoted == math.MaxInt64 {
				t.Errorf("tolerance %v: %d and %d requests, after %d and %d for a smaller one", tolerance, found, promoted, lastFound, lastPromoted)
			}
			lastFound, lastPromoted = found, promoted
		}
	}
}

func TestTheAlternativesBeginWithHalfOfTheTolerance(t *testing.T) {
	play := func(tolerance float64) judge.Result {
		c := plain()
		c.Tolerance = tolerance
		flow := newTraffic(1, 20_000)
		flow.stable, flow.canary = always(.001), always(.002)
		flow.weight = func(time.Duration) int32 { return 50 }
		var s judge.State
		var r judge.Result
		for flow.at < 2*time.Minute && r.Verdict != judge.Fail {
			s, r = c.Next(s, flow.next())
		}
		return r
	}
	if r := play(.001); r.Verdict != judge.Fail {
		t.Errorf("0.1 pp more with a tolerance of 0.1 pp: %s, want Fail", r.Explain())
	}
	if r := play(.005); r.Verdict == judge.Fail {
		t.Errorf("0.1 pp more with a tolerance of 0.5 pp: %s, want a Pass", r.Explain())
	}
}
