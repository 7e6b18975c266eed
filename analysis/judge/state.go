// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	"github.com/serin-dev/serin/analysis"
)

// State is everything the judge remembers of one revision's rollout. It is a
// value: copy it, compare it with ==, store it with MarshalText. The zero State
// is the beginning of a rollout; begin again with a zero State for each
// revision and for each explicit retry.
type State struct {
	first  int64 // start of the first window in which the canary answered, Unix nanoseconds
	last   int64 // end of the last window, Unix nanoseconds
	weight int32 // weight in the last window, percent

	process    process
	promotion  process // of the present step
	dispersion Dispersion
	step    step
	limits  [MaxLimits]limitState

	failed      Reason // why the canary failed; never unset, and nothing else changes then but last
	failedLimit uint64 // which limit, by its key
}

// step counts the windows that lie wholly within the present step.
type step struct {
	start          int64 // Unix nanoseconds; 0: from the first window on
	windows        int64
	canary, stable tally
}

type tally struct{ requests, failures int64 }

// limitState is how far one limit has been measured.
type limitState struct {
	key    uint64 // of the limit that the counts belong to; 0: none
	share  analysis.Share
	missed int32   // measurements missed in a row
	phase  outcome // of the last measurement in this step
}

// outcome is what the last measurement of a limit said.
type outcome uint8

const (
	unmeasured outcome = iota
	met
	missed
	undecided
)

// StartStep begins a step: what a Pass needs is counted from now on. Call it
// with the time from which the weight of the step was known to be in effect;
// windows that began earlier still add to the evidence against the canary, and
// never to a Pass. A state that has failed stays as it is.
func (s State) StartStep(now time.Time) State {
	if s.failed != "" {
		return s
	}
	s.step = step{start: now.UnixNano()}
	for i := range s.limits {
		s.limits[i].share = analysis.Share{}
		s.limits[i].phase = unmeasured
	}
	return s
}

// End is the end of the last window that was judged, zero if there was none:
// ask for the windows after it.
func (s State) End() time.Time {
	if s.last == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.last)
}

// Dispersion is what is known by now about how stable's failures vary, with
// what Config.Dispersion knew before.
func (s State) Dispersion() Dispersion { return s.dispersion }

// Evidence is the running bet against "the canary is no worse than stable": 1
// at the beginning, and Config.MaxFalseRollback's inverse when it rolls back.
func (s State) Evidence() float64 { return s.process.evidence() }

func (t *tally) add(a analysis.Arm) {
	t.requests += a.Requests
	t.failures += a.Failures
}
