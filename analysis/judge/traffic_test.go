// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// traffic makes up windows of independent requests, the same for the same seed.
type traffic struct {
	rng    *rand.Rand
	rate   float64 // requests per second, of both versions together
	length time.Duration
	at     time.Duration
	// canary and stable are the failure rates at a time since the beginning.
	canary, stable func(time.Duration) float64
	// weight is the canary's share in percent at a time.
	weight func(time.Duration) int32
}

var epoch = time.Unix(1_700_000_000, 0).UTC()

func newTraffic(seed uint64, rate float64) *traffic {
	return &traffic{
		rng: rand.New(rand.NewPCG(seed, 42)), rate: rate, length: 5 * time.Second,
		canary: always(0), stable: always(0),
		weight: func(time.Duration) int32 { return 10 },
	}
}

func always(p float64) func(time.Duration) float64 { return func(time.Duration) float64 { return p } }

// next makes the next window.
func (t *traffic) next() analysis.Window {
	start := t.at
	t.at += t.length
	weight := t.weight(start)
	total := t.rate * t.length.Seconds()
	canary := int64(math.Round(total * float64(weight) / 100))
	return analysis.Window{
		Start: epoch.Add(start), End: epoch.Add(t.at), Weight: weight,
		Canary: t.variant(canary, t.canary(start)),
		Stable: t.variant(int64(math.Round(total))-canary, t.stable(start)),
	}
}

func (t *traffic) variant(n int64, p float64) analysis.Variant {
	return analysis.Variant{Requests: n, Failures: t.binomial(n, p)}
}

// binomial draws the number of failures by jumping from one to the next.
func (t *traffic) binomial(n int64, p float64) int64 {
	if p <= 0 {
		return 0
	}
	var k int64
	for i := t.jump(p); i < n; i += 1 + t.jump(p) {
		k++
	}
	return k
}

// jump is how many requests succeed before the next failure.
func (t *traffic) jump(p float64) int64 {
	return int64(min(math.Log(1-t.rng.Float64())/math.Log1p(-p), 1e15))
}

// untilFailed plays windows until the verdict is Fail, and returns when that
// was, or false if it never was by the end.
func untilFailed(c judge.Config, t *traffic, end time.Duration) (time.Duration, bool) {
	var (
		s judge.State
		r judge.Result
	)
	for t.at < end {
		if s, r = c.Next(s, t.next()); r.Verdict == judge.Fail {
			return t.at, true
		}
	}
	return end, false
}

// planned is the weight in a rollout of 5, 10, 20 and 50 % a minute each and
// 90 % thereafter.
func planned(at time.Duration) int32 {
	weights := []int32{5, 10, 20, 50}
	return append(weights, 90)[min(int(at/time.Minute), len(weights))]
}

// incident is added to the failure rate of both versions in minutes 3 to 8.
func incident(rate float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if at >= 3*time.Minute && at < 8*time.Minute {
			return rate + .05
		}
		return rate
	}
}
