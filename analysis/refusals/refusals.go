// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis"
)

const (
	// Limit is for how long proxies may refuse requests by their own doing before the release is
	// rolled back. More proxies are there within a minute or so, and an autoscaler may take
	// one more to see that it has to act.
	Limit = 2 * time.Minute

	// longest is the most that one window counts, so that a few long ones are not enough.
	longest = analysis.StaleAfter
	// usualPart of the most that came while none were refused counts as "about as much as ever".
	usualPart = 0.8
	// failedPart of the share that proxies refuse is the share of failed answers beside it that
	// the tolerance is increased by: with more, it is what fails that fills the proxies.
	failedPart = 0.1
)

// State is what is remembered of one release. It is a value: keep the one that a method
// returns. The zero State is the beginning of a release. Its numbers are few and small, since it
// is stored with the rest of the analysis.
type State struct {
	// Refused is how many of 1,000 requests were refused in the last window that had any; 0 where
	// that is tolerated.
	Refused int64
	// Caused is for how long the proxies refused requests by their own doing, less how long
	// they did not since, in milliseconds.
	Caused int64
	// Usual is how many requests a minute came at most while no more were refused than is
	// tolerated.
	Usual int64
}

const (
	// mostCaused is the Limit as a State has it, and mostUsual more than proxies pass on.
	mostCaused = int64(Limit / time.Millisecond)
	mostUsual  = 100_000_000
	// whole is what Refused is a part of.
	whole = 1000
)

// Add adds a valid window. tolerance is the share of requests whose failure users accept.
func (s State) Add(w *analysis.Window, tolerance float64) State {
	all, length := w.Proxies, w.End.Sub(w.Start)
	if all.Requests == 0 {
		return s
	}
	minutes := length.Minutes()
	came, passedOn := float64(all.Requests)/minutes, float64(all.Requests-all.Failures)/minutes
	counted := min(length, longest).Milliseconds()
	refused, usual := share(all), float64(s.Usual)
	if refused > tolerance && came > usual && passedOn >= usualPart*usual && answers(w, tolerance) {
		s.Caused = min(s.Caused+counted, mostCaused)
	} else {
		s.Caused = max(0, s.Caused-counted)
	}
	if refused <= tolerance {
		s.Refused, s.Usual = 0, max(s.Usual, int64(min(math.Ceil(came), mostUsual)))
		return s
	}
	s.Refused = max(1, int64(math.Round(whole*refused)))
	return s
}

// answers reports whether the versions answer what is passed on to them. Without any answer
// that is not known.
func answers(w *analysis.Window, tolerance float64) bool {
	both := w.Canary.Plus(w.Stable)
	return both.Requests > 0 && share(both) <= tolerance+failedPart*share(w.Proxies)
}

// share is the share of requests that failed.
func share(v analysis.Variant) float64 { return float64(v.Failures) / float64(v.Requests) }

// Holds reports whether the canary should get no more traffic for now.
func (s State) Holds() bool { return s.Refused > 0 || s.Caused > 0 }

// RollsBack reports whether clients are better off without the proxies.
func (s State) RollsBack() bool { return s.Caused >= mostCaused }

// Explain says in one sentence, for users, what is refused and what to do.
func (s State) Explain() string {
	const (
		who  = "Serin's proxies "
		more = "give the proxies more memory or replicas"
	)
	caused := (time.Duration(s.Caused) * time.Millisecond).Round(time.Second)
	if s.Refused == 0 {
		return fmt.Sprintf(who+"refused requests until a moment ago; the step goes on when they refuse none for %v: "+more, caused)
	}
	what := fmt.Sprintf(who+"refuse %s %% of the requests without asking either version", strconv.FormatFloat(float64(s.Refused)/(whole/100), 'f', 1, 64))
	switch {
	case s.RollsBack():
		return fmt.Sprintf("%s, and did for %v: "+more+", and release the version again", what, caused)
	case s.Caused > 0:
		return fmt.Sprintf("%s, for %v of the %v that roll back: "+more, what, caused, Limit)
	}
	return what + ", although no more requests arrive than before: the versions answer fewer of them or fail, or proxies are missing; check these"
}

// Plausible reports whether Add could have made the state. What is stored can be edited.
func (s State) Plausible() bool {
	return s.Refused >= 0 && s.Refused <= whole && s.Caused >= 0 && s.Caused <= mostCaused && s.Usual >= 0 && s.Usual <= mostUsual
}
