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
		return s, c.reject(s, ReasonInvalidConfig)
	case w.Validate() != nil:
		return s, c.reject(s, ReasonInvalidData)
	case s.last != 0 && w.Start.UnixNano() < s.last:
		return s, c.reject(s, ReasonOutOfOrder)
	}
	c.absorb(&s, &w)
	return s, c.Assess(s, w.End)
}

// Assess is the verdict as of now without a new window: after a restart, or
// when measurements stay away.
func (c Config) Assess(s State, now time.Time) Result {
	if !c.valid() {
		return c.result(&s, Inconclusive, ReasonInvalidConfig)
	}
	return c.assess(&s, now)
}

// Values adds numbers of the user that became known while no traffic could be
// measured. They fail a canary as those in a window do; a Pass takes windows all the
// same, unless ValuesOnly.
func (c Config) Values(s State, known time.Time, values []analysis.Value) State {
	if !c.valid() || s.failed != "" {
		return s
	}
	w := analysis.Window{End: known, Values: values}
	c.alignLimits(&s)
	for i := range c.Limits {
		if l := &c.Limits[i]; l.Metric == Value {
			s.limits[i].addValue(l, &w)
			c.failByLimit(&s, i)
		}
	}
	return s
}

// assess is Assess for a valid Config. It may put the state in the order of the
// Config: give it a copy.
func (c *Config) assess(s *State, now time.Time) Result {
	if s.failed != "" {
		return c.failure(s)
	}
	if c.ValuesOnly && c.onlyValues() {
		return c.assessValues(s, now)
	}
	if reason := c.inconclusive(s, now); reason != "" {
		return c.result(s, Inconclusive, reason)
	}
	if r, ok := c.limitShortage(s, now); ok {
		return r
	}
	switch {
	case s.notCalled():
		return c.result(s, Pass, ReasonNotCalled)
	case s.compared():
		return c.comparison(s)
	}
	return c.result(s, Pass, ReasonNotCompared)
}

// inconclusive is why the windows of the present step allow no verdict; "" when they do.
func (c *Config) inconclusive(s *State, now time.Time) Reason {
	switch {
	case s.step.windows == 0:
		return ReasonMissingData
	case now.Sub(s.End()).Abs() > c.StaleAfter: // also when the clock was set back
		return ReasonStaleData
	case s.refusals.Holds():
		return ReasonRefusedByProxies
	case c.Shares && s.shares.Result().Mismatch():
		return ReasonShareMismatch
	}
	return c.shortage(s)
}

// assessValues passes a canary whose numbers are within their limits.
func (c *Config) assessValues(s *State, now time.Time) Result {
	if r, ok := c.limitShortage(s, now); ok {
		return r
	}
	return c.result(s, Pass, ReasonWithinLimits)
}

// comparison passes a canary unless the evidence against it is half of what rolls
// back, on the scale of bets that multiply: to give it more traffic just then
// would be to wager on its recovery. More traffic at this weight decides.
func (c *Config) comparison(s *State) Result {
	r := c.result(s, Pass, ReasonNotWorse)
	if r.Evidence >= math.Sqrt(r.Threshold) {
		r.Verdict, r.Reason = Inconclusive, ReasonSuspected
		return r
	}
	r.MayPromote = r.PromotionThreshold > 0 && r.PromotionEvidence >= r.PromotionThreshold && s.step.measured >= int64(c.MinEvidence)
	return r
}

// shortage is why the requests of the present step do not suffice; "" when they
// do. What a cold canary answered says that there is traffic, and no more than that.
func (c *Config) shortage(s *State) Reason {
	canary, stable := s.step.canary.requests, s.step.stable.requests
	warm := &s.step.warm
	switch {
	case s.notCalled() && c.onlyValues():
		return ""
	case canary == 0:
		return ReasonNoTraffic
	case s.compared() && stable == 0:
		return ReasonNoStableTraffic
	case warm.windows == 0:
		return ReasonStartingUp
	case warm.canary.requests < c.MinRequests, s.compared() && warm.stable.requests < c.MinRequests:
		return ReasonTooFewRequests
	}
	return ""
}

// notCalled reports whether the canary gets no requests. Users who match may call it
// at weight 0 too; then it is compared like any other.
func (s *State) notCalled() bool { return s.weight == 0 && s.step.canary.requests == 0 }

// onlyValues reports whether the limits say all that there is to know of a canary
// that gets no requests: without any, there would be nothing to pass.
func (c *Config) onlyValues() bool {
	for i := range c.Limits {
		if c.Limits[i].Metric != Value {
			return false
		}
	}
	return len(c.Limits) > 0
}

func (c *Config) reject(s State, why Reason) Result {
	if s.failed != "" && why != ReasonInvalidConfig {
		return c.failure(&s)
	}
	return c.result(&s, Inconclusive, why)
}

func (c *Config) failure(s *State) Result {
	r := c.result(s, Fail, s.failed)
	if s.failed != ReasonLimitMissed {
		return r
	}
	c.alignLimits(s)
	for i := range c.Limits {
		if l := &c.Limits[i]; l.key() == s.failedLimit {
			r.Limit, r.LimitSamples, r.LimitMissed = *l, s.limits[i].share.Total, s.limits[i].missed
		}
	}
	return r
}

func (c *Config) result(s *State, v Verdict, why Reason) Result {
	canary, stable := s.step.answered()
	r := Result{
		Verdict: v, Reason: why, DecidingMetric: MetricFailures,
		Evidence: s.Evidence(), PromotionEvidence: 1, MinDetectableEffect: 1,
		ReleaseRequests: s.release.requests, ReleaseFailures: s.release.failures,
		CanaryRequests: canary.requests, CanaryFailures: canary.failures,
		StableRequests: stable.requests, StableFailures: stable.failures,
		MinRequests: c.MinRequests,
	}
	if why == ReasonInvalidConfig {
		return r
	}
	r.Threshold = 1 / c.MaxFalseRollback
	if c.MaxBadPromotion > 0 {
		r.PromotionThreshold = 1 / c.MaxBadPromotion
	}
	if s.last == 0 {
		return r
	}
	r.Refusals = s.refusals
	if c.Shares {
		r.Shares = s.shares.Result()
	}
	c.alignComparisons(s)
	m := c.merge(s)
	r.PromotionEvidence, r.DecidingMetric = m.assurance, c.name(m.deciding)
	if m.deciding != failuresSlot {
		worst := s.metrics[m.deciding].worst(s.spent)
		r.DecidingBound, r.DecidingCanary, r.DecidingStable = worst.edge, worst.canary.share(), worst.stable.share()
	}
	r.MinDetectableEffect = c.minDetectableEffect(s)
	return r
}

// minDetectableEffect is the difference in failure rate that the requests so far would
// show in about half of all releases, or 1 if they would show none. The
// logarithm of a bet grows linearly with the canary's failures, so for each
// alternative j there is one failure rate at which its mean reaches what the
// part π_j·w of the stake needs:
//
//	E[ln e_j] = ln(1/α) + ln(1/(π_j·w))
//
// With many more requests of stable than of the canary that is
// n ≈ (ln(1/α) + ln(1/(π_j·w))) / KL(p_c ‖ r·p_s + d).
//
// What a bet loses because stable's rate is only estimated is in neither; the
// allowance for it was found by simulation.
func (c *Config) minDetectableEffect(s *State) float64 {
	const lost = 1.5
	n, least := s.informative, 1.0
	if n.nc == 0 || n.ns == 0 || s.spent == 0 {
		return least
	}
	base := s.metrics[failuresSlot].tracks[0].baseRate()
	null := boundary{slope: countSlope, d: toleranceShare * c.Tolerance}
	n.ks = n.ns * base
	stake := s.spent / c.totalWeight(s)
	for j, excess := range excesses(c.Tolerance) {
		alt := rates{s: base, c: null.at(base) + excess}
		if alt.c >= maxRate {
			break
		}
		at := null.project(n, alt)
		none := logRatio(0, n.nc, alt.c, at.c) + logRatio(n.ks, n.ns, alt.s, at.s)
		each := math.Log(alt.c/at.c) - math.Log1p((at.c-alt.c)/(1-at.c))
		needed := lost - math.Log(c.MaxFalseRollback*stake*prior[j])
		least = min(least, max((needed-none)/each/n.nc-base, 0))
	}
	return least
}

// totalWeight is that of all metrics that are compared.
func (c *Config) totalWeight(s *State) float64 {
	var sum float64
	for i := range s.metrics {
		sum += c.weigh(s, i)
	}
	return sum
}
