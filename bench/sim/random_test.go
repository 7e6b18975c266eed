// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
)

// moments are the mean and the variance of many draws.
func moments(n int, draw func() float64) (mean, variance float64) {
	var sum, squares float64
	for range n {
		x := draw()
		sum += x
		squares += x * x
	}
	mean = sum / float64(n)
	return mean, squares/float64(n) - mean*mean
}

// The simulation is worth what its random numbers are worth.
func TestDrawsHaveTheMomentsOfTheirDistributions(t *testing.T) {
	const draws = 40_000
	r := newRandom(1, "moments", 0)
	for _, tt := range []struct {
		name           string
		draw           func() float64
		mean, variance float64
	}{
		{"few requests", func() float64 { return float64(r.count(2.5)) }, 2.5, 2.5},
		{"many requests", func() float64 { return float64(r.count(2500)) }, 2500, 2500},
		{"rare failures of few requests", func() float64 { return float64(r.failures(20, .01)) }, .2, .198},
		{"rare failures", func() float64 { return float64(r.failures(250, .001)) }, .25, .24975},
		{"failures", func() float64 { return float64(r.failures(250, .01)) }, 2.5, 2.475},
		{"many failures", func() float64 { return float64(r.failures(5000, .5)) }, 2500, 1250},
		{"mostly failures", func() float64 { return float64(r.failures(5000, .9)) }, 4500, 450},
		{"a failure rate that jumps", func() float64 { return r.share(.01, .01) }, .01, .01 * .99 * .01},
		// Of n requests whose rate jumps, the failures vary n·p·(1−p)·(1+ρ(n−1)).
		{
			"overdispersed failures", func() float64 { return float64(r.failures(500, r.share(.1, .01))) },
			50, 500 * .1 * .9 * (1 + .01*499),
		},
		// Bursts: a Poisson number of them, 20 failures each, and the rest by themselves.
		{
			"bursts", func() float64 { return float64(Traffic{Burst: 20}.inBursts(r, 5000, .02)) },
			100 - 50*.01, 2.5*400 + 50,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mean, variance := moments(draws, tt.draw)
			if d := math.Abs(mean-tt.mean) / math.Sqrt(tt.variance/draws); d > 4 {
				t.Errorf("mean %v, want %v: %.1f standard errors away", mean, tt.mean, d)
			}
			if math.Abs(variance/tt.variance-1) > .12 {
				t.Errorf("variance %v, want about %v", variance, tt.variance)
			}
		})
	}
}

func TestDrawsAtTheEdgesAreNotRandom(t *testing.T) {
	r := newRandom(1, "edges", 0)
	for name, got := range map[string]int64{
		"no requests expected": r.count(0), "no requests": r.failures(0, .5), "nothing fails": r.failures(10, 0), "no bursts": Traffic{Burst: 20}.inBursts(r, 10, 0),
	} {
		if got != 0 {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := r.failures(10, 1.5); got != 10 {
		t.Errorf("everything fails: %d of 10", got)
	}
	if got := r.share(.3, 0); got != .3 {
		t.Errorf("a rate that does not jump: %v", got)
	}
}

func TestRunsAreAlikeForTheSameSeedAndNameOnly(t *testing.T) {
	first := func(seed uint64, name string, run int) uint64 { return newRandom(seed, name, run).source.Uint64() }
	this := first(1, "a", 2)
	if again := first(1, "a", 2); again != this {
		t.Error("the same run differs")
	}
	for _, other := range []uint64{first(2, "a", 2), first(1, "b", 2), first(1, "a", 3)} {
		if other == this {
			t.Error("another run is the same")
		}
	}
}
