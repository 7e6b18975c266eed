// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
)

// Detectable says what difference the judge finds by a number of requests.
type Detectable struct {
	// Tolerance is the setting, and Base how often stable fails.
	Tolerance, Base float64
	// Requests are numbers of requests that the canary answered, and Effects the
	// smallest differences in failure rate that are found by then in nine of ten
	// cases, as fractions; 1 where none is.
	Requests, Effects []float64
}

// Detectables are the lines of the picture: three tolerances at two base rates.
func Detectables() []Detectable {
	requests := []float64{100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}
	var lines []Detectable
	for _, base := range []float64{.001, .01} {
		for _, tolerance := range []float64{.001, .005, .02} {
			line := Detectable{Tolerance: tolerance, Base: base, Requests: requests}
			for _, n := range requests {
				line.Effects = append(line.Effects, detectable(tolerance, base, n))
			}
			lines = append(lines, line)
		}
	}
	return lines
}

const (
	power       = .9
	powerRuns   = 60
	powerWindow = 36 // windows that the requests come in: three minutes
	powerWeight = 10 // percent
)

// detectable is the smallest difference that is found often enough, to one part
// in thirty. More requests, or a larger difference, are always easier, so it is
// searched by halving, with the same random numbers throughout.
func detectable(tolerance, base, requests float64) float64 {
	const least, precision = 1e-5, 1.03
	lo, hi := least, 1-base
	if !found(tolerance, base, requests, hi) {
		return 1
	}
	for hi/lo > precision {
		if middle := math.Sqrt(lo * hi); found(tolerance, base, requests, middle) {
			hi = middle
		} else {
			lo = middle
		}
	}
	return hi
}

// found plays releases at one weight and reports whether enough of them are
// rolled back before the requests are used up.
func found(tolerance, base, requests, effect float64) bool {
	config := judge.Defaults()
	config.Tolerance = tolerance
	length := powerWindow * analysis.WindowLength
	traffic := Traffic{
		Rate:   always(requests / length.Seconds() * 100 / powerWeight),
		Stable: always(base), Canary: always(base + effect),
	}
	missed := 0
	for run := range powerRuns {
		if !foundOnce(config, traffic, newRandom(1, "detectable", run), length) {
			missed++
		}
		if missed > (1-power)*powerRuns {
			return false
		}
	}
	return true
}

func foundOnce(config judge.Config, traffic Traffic, r random, length time.Duration) bool {
	var state judge.State
	for now := time.Duration(0); now < length; now += analysis.WindowLength {
		var result judge.Result
		if state, result = config.Next(state, traffic.window(r, now, powerWeight)); result.Verdict == judge.Fail {
			return true
		}
	}
	return false
}
