// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/refusals"
	"github.com/serin-dev/serin/analysis/shares"
)

// State is everything the judge remembers of one revision's rollout. It is a
// value: copy it, compare it with ==, store it with MarshalText. The zero State
// is the beginning of a rollout; begin again with a zero State for each
// revision and for each explicit retry.
type State struct {
	first  int64 // start of the first window in which the canary answered, Unix nanoseconds
	last   int64 // end of the last window, Unix nanoseconds
	weight int32 // weight in the last window, percent
	timed  bool  // latency was measured when the canary first answered, and is compared

	metrics [slots]metric
	// spent is the part of the initial stake that has been put on start times.
	spent float64
	// merged is the evidence of all metrics after the last window.
	merged float64

	// previous is what stable answered in the last window, and slow how much of it
	// was beyond the edges of the latency.
	previous   counter
	slow       [edges]counter
	dispersion Dispersion
	// previousCanary and canary are the same of the canary, of its failures only
	// and after the start-up phase.
	previousCanary counter
	canary         Dispersion

	release counter // of the canary since its first request
	// informative are the requests that were bet on after the start-up phase,
	// clusters counted once.
	informative counts

	step   step
	shares shares.State // of the windows of the present step
	// refusals are those of the proxies, whichever step it is.
	refusals refusals.State
	limits   [MaxLimits]limitState

	failed      Reason // why the canary failed; never unset, and nothing else changes then but last
	failedLimit uint64 // which limit, by its key
}

// step counts the windows that lie wholly within the present step.
type step struct {
	start          int64 // Unix nanoseconds; 0: from the first window on
	windows        int64
	canary, stable counter
	// warm are those of the windows after the start-up phase: only they count
	// towards a Pass.
	warm warm
	// since is the start of the first window that can speak for an early
	// promotion, Unix nanoseconds, and measured the length of all of them, in
	// nanoseconds.
	since, measured int64
	// spent is as in State, for bets in favour of the canary.
	spent float64
}

// warm counts windows that begin after the start-up phase.
type warm struct {
	windows        int64
	canary, stable counter
}

type counter struct{ requests, failures int64 }

// StartStep begins a step: what a Pass or an early promotion needs is counted
// from now on. Call it with the time from which the weight of the step was known
// to be live; windows that began earlier still add to the evidence against
// the canary, and never to a Pass. A state that has failed stays as it is.
func (s State) StartStep(now time.Time) State {
	if s.failed != "" {
		return s
	}
	s.step, s.shares = step{start: now.UnixNano()}, s.shares.Begin()
	for i := range s.metrics {
		s.metrics[i].restart()
	}
	for i := range s.limits {
		s.limits[i].restart()
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

// StepStart is what StartStep was called with last; zero if it was not.
func (s State) StepStart() time.Time {
	if s.step.start == 0 {
		return time.Time{}
	}
	return time.Unix(0, s.step.start)
}

// Dispersion is what is known by now about how stable's failures vary, with
// what Config.Dispersion knew before.
func (s State) Dispersion() Dispersion { return s.dispersion }

// Evidence is the running bet against "the canary is no worse than stable": 1
// at the beginning, and Config.MaxFalseRollback's inverse when it rolls back.
func (s State) Evidence() float64 {
	if s.last == 0 {
		return 1
	}
	return s.merged
}

// compared reports whether stable is meant to get traffic at all.
func (s *State) compared() bool { return s.weight < 100 }

// answered is what is said of the requests of both versions: those after the
// start-up phase, or those within it while there is nothing else.
func (s *step) answered() (canary, stable counter) {
	if s.warm.windows > 0 {
		return s.warm.canary, s.warm.stable
	}
	return s.canary, s.stable
}

func (t *counter) add(a *analysis.Variant) {
	const most = 1 << 62 // far beyond what can be counted; an overflow would turn a sum negative
	t.requests = min(t.requests+a.Requests, most)
	t.failures = min(t.failures+a.Failures, most)
}

// plausible reports whether Next could have made the state. What is stored can
// be edited; a state that could not have come about must not poison what follows.
func (s *State) plausible() bool {
	ok := all(
		s.first >= 0, s.last >= s.first, s.weight >= 0, s.weight <= 100,
		stakeable(s.spent), finite(s.merged), s.previous.plausible(), s.dispersion.plausible(),
		s.previousCanary.plausible(), s.canary.plausible(),
		s.release.plausible(), finite(s.informative.nc), finite(s.informative.ns), s.step.plausible(), s.shares.Plausible(), s.refusals.Plausible(),
	)
	for i := range s.metrics {
		ok = ok && s.metrics[i].plausible()
	}
	for i := range s.slow {
		ok = ok && s.slow[i].plausible()
	}
	for i := range s.limits {
		ok = ok && s.limits[i].plausible()
	}
	return ok
}

func all(conditions ...bool) bool { return !slices.Contains(conditions, false) }

func (s *step) plausible() bool {
	return s.canary.plausible() && s.stable.plausible() && s.warm.plausible(s) &&
		s.since >= 0 && s.measured >= 0 && stakeable(s.spent)
}

func (w *warm) plausible(all *step) bool {
	return w.windows >= 0 && w.windows <= all.windows && w.canary.plausible() && w.stable.plausible() &&
		w.canary.requests <= all.canary.requests && w.stable.requests <= all.stable.requests
}

func (m *metric) plausible() bool {
	if m.kind > histogram || m.open < 0 || m.open > edges || m.end < 0 || m.kind == unknown && m.open > 0 {
		return false
	}
	ok := m.before.plausible()
	for i := range m.tracks[:m.open] {
		ok = ok && m.tracks[i].plausible()
	}
	return ok
}

func (p *preview) plausible() bool {
	ok := p.bad >= 0 && p.bad <= p.events && p.events < thorough
	for _, n := range p.within {
		ok = ok && int64(n) <= p.events
	}
	return ok
}

func (t *track) plausible() bool {
	ok := !math.IsNaN(t.edge) && !math.IsInf(t.edge, 0) && t.usual > 0 && t.usual < 1 &&
		t.stable.plausible() && t.canary.plausible()
	for _, mass := range t.against {
		ok = ok && finite(mass) && mass <= maxMass+1
	}
	for _, mass := range t.favour {
		ok = ok && finite(mass) && mass <= maxMass+1
	}
	return ok
}

func (m memory) plausible() bool { return finite(m.events) && finite(m.bad) && m.bad <= m.events }

func (t counter) plausible() bool { return t.failures >= 0 && t.failures <= t.requests }

func (l *limitState) plausible() bool {
	s := l.share
	return l.phase <= missing && l.missed >= 0 && l.missed <= maxConsecutiveFailureLimit && l.at >= 0 &&
		s.Within >= 0 && s.Beyond >= 0 && s.Within <= s.Total && s.Beyond <= s.Total-s.Within
}

// stakeable reports whether x is a part of the stake.
func stakeable(x float64) bool { return x >= 0 && x <= 1+1e-9 }

// finite reports whether x is a number that is not negative.
func finite(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
