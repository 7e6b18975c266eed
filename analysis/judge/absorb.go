// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/refusals"
	"github.com/serin-dev/serin/analysis/shares"
)

// The nulls. A rollback needs evidence against p_c ≤ slope·p_s + d ("the canary's
// share of bad events is at most a tenth above stable's, plus a fifth of the
// tolerance"), a promotion evidence against p_c ≥ slope·p_s + d ("it is worse by
// the tolerance or more").
const (
	countSlope     = 1.1 // r, of counts
	toleranceShare = 0.2 // d / tolerance
	edgeSlope      = 1.25
	edgeMargin     = 0.001
	// edgeTolerance is for a promotion what edgeMargin is for a rollback.
	edgeTolerance = edgeMargin / toleranceShare
	// slowWindows is how many windows at least have to show that a canary is slower: a process that waits for a processor
	// answers all requests of that moment late, and a canary has few pods. To win less in one window keeps the proof: a
	// smaller factor has no larger expectation.
	slowWindows = 2
)

// timing is what is known of a window before it is looked at.
type timing struct {
	start, end int64
	// starting means that the canary is in its start-up phase.
	starting bool
	// warm means that the canary's start-up phase is over.
	warm bool
	// favourable means that the window can speak for an early promotion.
	favourable bool
	// keep is what is left of memories.
	keep float64
	// enough is how many events of stable settle the edges of a histogram.
	enough int64
}

// absorb adds a valid window to the state. Once failed, the figures stay those
// that failed it.
func (c *Config) absorb(s *State, w *analysis.Window) {
	start, end := w.Start.UnixNano(), w.End.UnixNano()
	if s.failed != "" {
		s.last = end
		return
	}
	c.begin(s, w, start)
	at := c.timing(s, w, start, end)
	c.stake(s, &at)
	c.play(s, w, &at)
	if s.first != 0 {
		s.release.add(&w.Canary)
	}
	c.remember(s, w, &at)
	s.last, s.weight = end, w.Weight
	if start >= s.step.start {
		c.absorbStep(s, w, &at)
	}
	s.merged = c.merge(s).evidence
	if s.merged >= 1/c.MaxFalseRollback {
		// Said first even if a limit was missed too: it is the stronger reason.
		s.failed, s.failedLimit = ReasonWorseThanStable, 0
	}
	c.failByRefusals(s, w)
}

// failByRefusals fails a release whose proxies refuse too many requests for too long.
func (c *Config) failByRefusals(s *State, w *analysis.Window) {
	if s.failed != "" {
		return
	}
	if s.refusals = s.refusals.Add(w, c.Tolerance); s.refusals.RollsBack() {
		s.failed = ReasonRefusedByProxies
	}
}

// begin notes what begins with this window.
func (c *Config) begin(s *State, w *analysis.Window, start int64) {
	if s.last == 0 {
		s.last, s.dispersion = start, c.Dispersion.stored()
	}
	if s.first == 0 && w.Canary.Requests > 0 {
		s.first = start
		// Only now, so that nothing is staked on a metric that is not measured: which
		// metrics there are does not depend on how the canary does.
		s.timed = c.LatencyWeight > 0 && (w.Stable.Latency != nil || s.metrics[latencySlot].kind == histogram)
	}
	failures := &s.metrics[failuresSlot]
	failures.kind, failures.open = counted, 1
	failures.tracks[0].usual = max(rough(c.UsualFailureRate), minUsual)
	c.alignComparisons(s)
}

func (c *Config) timing(s *State, w *analysis.Window, start, end int64) timing {
	at := timing{start: start, end: end, keep: decay(time.Duration(end - s.last)), starting: start-s.first < int64(c.Startup.For)}
	at.warm = s.first != 0 && !at.starting
	at.favourable = at.warm && start >= s.step.start && c.MaxBadPromotion > 0 &&
		w.Canary.Requests > 0 && w.Stable.Requests > 0
	at.enough = thorough
	if s.first != 0 && end-s.first >= int64(c.Startup.For) {
		at.enough = opening // the next window is to be bet on: better a rough edge than none
	}
	return at
}

// stake puts what is due on every bet. It depends on the time alone, so it is
// known before the window's counts.
func (c *Config) stake(s *State, at *timing) {
	if s.first == 0 {
		return
	}
	against := max(0, stakeDue(time.Duration(at.start-s.first), c.Startup)-s.spent)
	s.spent += against
	var favour float64
	if at.favourable {
		if s.step.since == 0 {
			s.step.since = at.start
		}
		favour = max(0, stakeDue(time.Duration(at.start-s.step.since), Startup{})-s.step.spent)
		s.step.spent += favour
	}
	for i := range s.metrics {
		s.metrics[i].stake(against, favour)
	}
}

// play bets on every metric that the window says something about.
func (c *Config) play(s *State, w *analysis.Window, at *timing) {
	traffic := observation{canary: &w.Canary, stable: &w.Stable}
	c.playMetric(s, failuresSlot, traffic, at)
	if s.first == 0 || s.timed {
		c.playMetric(s, latencySlot, traffic, at)
	}
	for i := range c.Comparisons {
		if sample := w.Sample(c.Comparisons[i].Name); sample != nil && s.metrics[userSlots+i].takes(sample, w, s.step.start) {
			c.playMetric(s, userSlots+i, observation{canary: &sample.Canary, stable: &sample.Stable}, at)
		}
	}
}

func (c *Config) playMetric(s *State, slot int, o observation, at *timing) {
	m := &s.metrics[slot]
	null := c.nulls(s, slot, at)
	m.play(o, &null, c.temperings(s, slot), at.keep)
	if slot == latencySlot && o.stable.Latency == nil {
		return // not a metric of counts: those are the failures
	}
	m.learn(o.stable, at.enough, s.spent, s.step.spent)
}

// takes reports whether a sample is new, of the kind of those before and of the
// present step: one that began under another weight mixes two. It notes until
// when the sample counted.
func (m *metric) takes(sample *analysis.Sample, w *analysis.Window, step int64) bool {
	start, apart := w.Start.UnixNano(), false
	if !sample.Start.IsZero() && !sample.Start.Equal(w.Start) {
		start, apart = sample.Start.UnixNano(), true
	}
	timed := sample.Canary.Latency != nil || sample.Stable.Latency != nil
	if start < m.end || m.kind == counted && timed {
		return false
	}
	m.apart = m.apart || apart
	m.end = w.End.UnixNano()
	return !apart || start >= step
}

// nulls are the edges that a metric is bet against at a moment.
func (c *Config) nulls(s *State, slot int, at *timing) nulls {
	n := nulls{maxWin: math.Inf(-1), maxFavour: math.Inf(-1)}
	tolerance := c.Tolerance
	if slot >= userSlots {
		tolerance = c.Comparisons[slot-userSlots].Tolerance
	}
	timed := s.metrics[slot].kind == histogram
	if timed {
		n.rollback = boundary{slope: edgeSlope, d: edgeMargin}
		n.promotion = boundary{slope: edgeSlope, d: edgeTolerance}
		tolerance = edgeTolerance
	} else {
		n.rollback = boundary{slope: countSlope, d: toleranceShare * tolerance}
		n.promotion = boundary{slope: 1, d: tolerance}
	}
	n.excess = excesses(tolerance)
	// A cold version is slow by factors; there is no saying how slow is too slow.
	if cold := at.starting && timed; s.first != 0 && !cold {
		n.maxWin = -math.Log(c.MaxFalseRollback)
	}
	if timed {
		n.maxWin /= slowWindows
	}
	if at.starting {
		n.rollback.d += c.Startup.Tolerate
	}
	if at.favourable {
		n.maxFavour = -math.Log(c.MaxBadPromotion)
	}
	return n
}

// remember adds a window to what is known of how both versions vary, and counts
// what it said about the difference. It comes after the bets, which use what was
// known before.
func (c *Config) remember(s *State, w *analysis.Window, at *timing) {
	if at.warm && w.Canary.Requests > 0 && w.Stable.Requests > 0 {
		n := c.temperings(s, failuresSlot).against(counts{nc: float64(w.Canary.Requests), ns: float64(w.Stable.Requests)})
		s.informative.nc, s.informative.ns = rough(s.informative.nc+n.nc), rough(s.informative.ns+n.ns)
	}
	if at.start != s.last {
		s.previous, s.previousCanary, s.slow = counter{}, counter{}, [edges]counter{}
	}
	if at.warm { // a cold canary varies as it never will again
		s.canary.add(s.previousCanary, &w.Canary, time.Duration(at.end-at.start))
		s.previousCanary = counter{requests: w.Canary.Requests, failures: w.Canary.Failures}
	}
	s.dispersion.add(s.previous, &w.Stable, time.Duration(at.end-at.start))
	s.previous = counter{requests: w.Stable.Requests, failures: w.Stable.Failures}
	latency := &s.metrics[latencySlot]
	for i := range latency.tracks[:latency.open] {
		t := &latency.tracks[i]
		var now counter
		if n, slow, ok := beyond(&w.Stable, t.edge); ok {
			now = counter{requests: int64(n), failures: int64(slow)}
		}
		s.dispersion.Latency = s.dispersion.Latency.pair(s.slow[i], now, t.usual*(1-t.usual))
		s.slow[i] = now
	}
}

// absorbStep adds a window that lies within the present step.
func (c *Config) absorbStep(s *State, w *analysis.Window, at *timing) {
	s.step.windows++
	s.step.canary.add(&w.Canary)
	s.step.stable.add(&w.Stable)
	if c.Shares {
		s.shares = s.shares.Add(shares.Count{Canary: w.Canary.Requests, Stable: w.Stable.Requests}, w.Weight)
	}
	if at.warm {
		s.step.warm.windows++
		s.step.warm.canary.add(&w.Canary)
		s.step.warm.stable.add(&w.Stable)
	}
	if at.favourable {
		s.step.measured += at.end - at.start
	}
	c.alignLimits(s)
	for i := range c.Limits {
		s.limits[i].add(&c.Limits[i], w)
		c.failByLimit(s, i)
	}
}

// failByLimit fails a canary that missed a limit too often in a row.
func (c *Config) failByLimit(s *State, i int) {
	if l := &c.Limits[i]; s.failed == "" && s.limits[i].missed >= l.ConsecutiveFailureLimit {
		s.failed, s.failedLimit, s.refusals = ReasonLimitMissed, l.key(), refusals.State{} // one or the other is stored
	}
}
