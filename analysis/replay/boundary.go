// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/recording"
)

const (
	// finest is the ratio of differences that are tried one after the other, and leastDifference
	// the least of them where no difference is tolerated.
	finest          = 1.2
	leastDifference = 0.0005
)

// Boundary is, for each line of a recording, the least difference of the failure rates, as a fraction, with which the
// release would have been rolled back by then, had it been the same all the time. It is at least the
// tolerance, a fraction too, and nil where no difference would, and from where on the release fails
// without one, as by its latency.
func Boundary(lines []recording.Line, tolerance float64) []*float64 {
	out := make([]*float64, len(lines))
	without := rollsBack(lines, 0)
	for d := 1.0; d >= max(tolerance, leastDifference); d /= finest {
		at := rollsBack(lines[:without], d)
		if at == without {
			break // and so does no lesser one
		}
		for i := at; i < without; i++ {
			out[i] = &d
		}
	}
	return out
}

// rollsBack is the index of the line in which the release would have been rolled back with a
// difference of the failure rates, and the number of lines if it would not. Nothing is known of
// windows that are missing from a recording: they count for no version.
func rollsBack(lines []recording.Line, difference float64) int {
	var at recording.Position
	var even evenly
	for i, l := range lines {
		l.Resume = "" // the state of what really failed
		if !l.OnlyValues() {
			even.fail(&l, difference)
		}
		switch _, result, err := at.Next(&l); {
		case err != nil:
			return len(lines)
		case result.Verdict == judge.Fail:
			return i
		}
	}
	return len(lines)
}

// evenly has the canary fail as much more often than stable as it is told, in all windows so far.
type evenly struct{ canary, failed, stable, stableFailed int64 }

// fail sets how many requests of the canary fail in a window, which its proxies share as they share
// its requests.
func (e *evenly) fail(l *recording.Line, difference float64) {
	requests := *l.Canary.Requests
	e.canary, e.stable, e.stableFailed = e.canary+requests, e.stable+*l.Stable.Requests, e.stableFailed+*l.Stable.Failures
	share := difference + float64(e.stableFailed)/max(1, float64(e.stable))
	failures := int64(math.Round(share*float64(e.canary))) - e.failed
	failures = max(0, min(failures, requests))
	e.failed += failures
	canary := *l.Canary
	canary.Failures = &failures
	if canary.Spread != nil && requests > 0 {
		canary.Spread = &recording.Spread{Proxies: canary.Spread.Proxies, Squares: float64(failures) * float64(failures) / float64(requests)}
	}
	l.Canary = &canary
}
