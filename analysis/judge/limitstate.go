// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/serin-dev/serin/analysis"

// add counts one window, and closes the measurement once it has its samples.
func (s limitState) add(l Limit, canary analysis.Arm) limitState {
	share, ok := l.share(canary)
	if !ok {
		return s
	}
	s.share.Total += share.Total
	s.share.Within += share.Within
	s.share.Beyond += share.Beyond
	if s.share.Total < l.MinSamples {
		return s
	}
	switch ok, bad := l.measure(s.share); {
	case ok:
		s.phase, s.missed = met, 0
	case bad:
		s.phase, s.missed = missed, min(s.missed+1, maxFailureLimit)
	default:
		// Neither met nor missed: it must not break a row of misses, nor be one.
		s.phase = undecided
	}
	s.share = analysis.Share{}
	return s
}

// alignLimits gives each limit of the Config the counts that belong to it, if
// any: limits may be added, removed or reordered during a rollout.
func (c Config) alignLimits(s State) State {
	var aligned [MaxLimits]limitState
	for i, l := range c.Limits {
		aligned[i].key = l.key()
		for _, old := range s.limits {
			if old.key == aligned[i].key {
				aligned[i] = old
			}
		}
	}
	s.limits = aligned
	return s
}

// limitShortage finds the first limit that stands in the way of a Pass.
func (c Config) limitShortage(s State) (Result, bool) {
	s = c.alignLimits(s)
	for i, l := range c.Limits {
		state := s.limits[i]
		why := ReasonLimitUnmeasured
		switch state.phase {
		case met:
			continue
		case missed:
			why = ReasonLimitAtRisk
		case undecided:
			why = ReasonLimitUndecided
		case unmeasured:
		}
		r := c.result(s, Inconclusive, why)
		r.Limit, r.LimitSamples, r.LimitMissed = l, state.share.Total, state.missed
		return r, true
	}
	return Result{}, false
}
