// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Next judges one more window. It returns the state to keep and the verdict as
// of the end of that window. A window that cannot be true, or that overlaps an
// earlier one, changes nothing.
func (c Config) Next(s State, w analysis.Window) (State, Result) {
	switch {
	case !c.valid():
		return s, c.result(s, Inconclusive, ReasonInvalidConfig)
	case w.Validate() != nil:
		return s, c.reject(s, ReasonInvalidData)
	case s.last != 0 && w.Start.UnixNano() < s.last:
		return s, c.reject(s, ReasonOutOfOrder)
	}
	s = c.absorb(s, w)
	return s, c.Assess(s, w.End)
}

// Assess is the verdict as of now without a new window: after a restart, or
// when measurements stay away.
func (c Config) Assess(s State, now time.Time) Result {
	if !c.valid() {
		return c.result(s, Inconclusive, ReasonInvalidConfig)
	}
	if s.failed != "" {
		return c.failure(s)
	}
	switch {
	case s.step.windows == 0:
		return c.result(s, Inconclusive, ReasonMissingData)
	case now.Sub(s.End()).Abs() > c.StaleAfter: // also when the clock was set back
		return c.result(s, Inconclusive, ReasonStaleData)
	}
	if reason := c.shortage(s); reason != "" {
		return c.result(s, Inconclusive, reason)
	}
	if r, ok := c.limitShortage(s); ok {
		return r
	}
	if s.compared() {
		return c.comparison(s)
	}
	return c.result(s, Pass, ReasonNotCompared)
}

// comparison passes a canary unless the evidence against it is half of what rolls
// back, on the scale of bets that multiply: to give it more traffic just then
// would be to wager on its recovery. More traffic at this weight decides.
func (c Config) comparison(s State) Result {
	if r := c.result(s, Inconclusive, ReasonSuspected); r.Evidence >= math.Sqrt(r.Needed) {
		return r
	}
	return c.result(s, Pass, ReasonNotWorse)
}

// shortage is why the requests of the present step do not suffice; "" when they do.
func (c Config) shortage(s State) Reason {
	canary, stable := s.step.canary.requests, s.step.stable.requests
	switch {
	case canary == 0:
		return ReasonNoTraffic
	case s.compared() && stable == 0:
		return ReasonNoStableTraffic
	case s.last-s.first < int64(c.Startup.For):
		return ReasonStartingUp
	case canary < c.MinRequests, s.compared() && stable < c.MinRequests:
		return ReasonTooFewRequests
	}
	return ""
}

// compared reports whether stable is meant to get traffic at all.
func (s State) compared() bool { return s.weight < 100 }

// absorb adds a valid window to the state. Once failed, the figures stay those
// that failed it.
func (c Config) absorb(s State, w analysis.Window) State {
	start, end := w.Start.UnixNano(), w.End.UnixNano()
	if s.failed != "" {
		s.last = end
		return s
	}
	if s.last == 0 {
		s.last = start
	}
	if s.first == 0 && w.Canary.Requests > 0 {
		s.first = start
	}
	n := counts{
		nc: float64(w.Canary.Requests), kc: float64(w.Canary.Failures),
		ns: float64(w.Stable.Requests), ks: float64(w.Stable.Failures),
	}
	if s.first != 0 {
		elapsed := time.Duration(start - s.first)
		s.process = s.process.
			stake(stakeDue(elapsed, c.Startup)).
			bet(n, s.process.baseRate(c.UsualFailureRate), c.margin(elapsed), 1/c.MaxFalseRollback)
	}
	s.process = s.process.remember(n, time.Duration(end-s.last))
	s.last, s.weight = end, w.Weight
	if start >= s.step.start {
		s = c.absorbStep(s, w)
	}
	if s.process.evidence() >= 1/c.MaxFalseRollback {
		// Said first even if a limit was missed too: it is the stronger reason.
		s.failed, s.failedLimit = ReasonWorseThanStable, 0
	}
	return s
}

// margin is the d of the null hypothesis for a window that began so long after
// the canary's first request.
func (c Config) margin(elapsed time.Duration) float64 {
	d := toleranceShare * c.Tolerance
	if elapsed < c.Startup.For {
		d += c.Startup.Tolerate
	}
	return d
}

// absorbStep adds a window that lies within the present step.
func (c Config) absorbStep(s State, w analysis.Window) State {
	s.step.windows++
	s.step.canary.add(w.Canary)
	s.step.stable.add(w.Stable)
	s = c.alignLimits(s)
	for i, l := range c.Limits {
		s.limits[i] = s.limits[i].add(l, w.Canary)
		if s.failed == "" && s.limits[i].missed >= l.FailureLimit {
			s.failed, s.failedLimit = ReasonLimitMissed, l.key()
		}
	}
	return s
}

func (c Config) reject(s State, why Reason) Result {
	if s.failed != "" {
		return c.failure(s)
	}
	return c.result(s, Inconclusive, why)
}

func (c Config) failure(s State) Result {
	r := c.result(s, Fail, s.failed)
	for i, l := range c.Limits {
		if s.failed == ReasonLimitMissed && l.key() == s.failedLimit {
			r.Limit, r.LimitSamples, r.LimitMissed = l, s.limits[i].share.Total, s.limits[i].missed
		}
	}
	return r
}

func (c Config) result(s State, v Verdict, why Reason) Result {
	var needed float64
	if within(c.MaxFalseRollback, 0.5) {
		needed = 1 / c.MaxFalseRollback
	}
	return Result{
		Verdict: v, Reason: why,
		Evidence: s.process.evidence(), Needed: needed,
		CanaryRequests: s.step.canary.requests, CanaryFailures: s.step.canary.failures,
		StableRequests: s.step.stable.requests, StableFailures: s.step.stable.failures,
		MinRequests: c.MinRequests,
	}
}
