// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	"github.com/serin-dev/serin/analysis"
)

// limitState is how far one limit has been measured.
type limitState struct {
	key    uint64 // of the limit that the counts belong to; 0: none
	share  analysis.Share
	missed int32   // measurements missed in a row
	phase  outcome // of the last measurement in this step
	at     int64   // when a Value was last measured, Unix nanoseconds
}

// outcome is what the last measurement of a limit said.
type outcome uint8

const (
	unmeasured outcome = iota
	met
	missed
	undecided
	missing
)

// restart begins a step: measurements of the one before certify nothing.
func (s *limitState) restart() { s.share, s.phase, s.at = analysis.Share{}, unmeasured, 0 }

// add counts one window, and closes the measurement once it has its samples.
func (s *limitState) add(l *Limit, w *analysis.Window) {
	if l.Metric == Value {
		s.addValue(l, w)
		return
	}
	share, ok := l.share(&w.Canary)
	if !ok {
		return
	}
	s.share.Total += share.Total
	s.share.Within += share.Within
	s.share.Beyond += share.Beyond
	if s.share.Total < l.MinSamples {
		return
	}
	ok, bad := l.measure(s.share)
	s.settle(ok, bad)
	s.share = analysis.Share{}
}

// addValue counts one number. One that was due and is missing is neither met nor
// missed: the step waits for the next.
func (s *limitState) addValue(l *Limit, w *analysis.Window) {
	v := w.Value(l.Name)
	if v == nil {
		return
	}
	x, ok := v.Get()
	if !ok {
		s.phase = missing
		return
	}
	s.share.Total++
	s.at = w.End.UnixNano()
	within := x >= l.Low && x <= l.High
	s.settle(within, !within)
}

func (s *limitState) settle(ok, bad bool) {
	switch {
	case ok:
		s.phase, s.missed = met, 0
	case bad:
		s.phase, s.missed = missed, min(s.missed+1, maxConsecutiveFailureLimit)
	default:
		// Neither met nor missed: it must not break a row of misses, nor be one.
		s.phase = undecided
	}
}

// obstacle is why the limit stands in the way of a Pass; "" when it does not.
func (s *limitState) obstacle(l *Limit, now time.Time) Reason {
	switch s.phase {
	case missed:
		return ReasonLimitAtRisk
	case undecided:
		return ReasonLimitUndecided
	case unmeasured:
		return ReasonLimitUnmeasured
	case missing:
		return ReasonLimitMissing
	case met:
	}
	switch {
	case l.Metric != Value:
		return ""
	case s.share.Total < l.MinSamples:
		return ReasonLimitUnmeasured
	case now.Sub(time.Unix(0, s.at)) > l.StaleAfter:
		return ReasonLimitMissing
	}
	return ""
}

// alignLimits gives each limit of the Config the counts that belong to it, if
// any: limits may be added, removed or reordered during a rollout.
func (c *Config) alignLimits(s *State) {
	var aligned [MaxLimits]limitState
	for i := range c.Limits {
		aligned[i].key = c.Limits[i].key()
		for _, old := range s.limits {
			if old.key == aligned[i].key {
				aligned[i] = old
			}
		}
	}
	s.limits = aligned
}

// limitShortage finds the first limit that stands in the way of a Pass.
func (c *Config) limitShortage(s *State, now time.Time) (Result, bool) {
	c.alignLimits(s)
	for i := range c.Limits {
		state := &s.limits[i]
		if why := state.obstacle(&c.Limits[i], now); why != "" {
			r := c.result(s, Inconclusive, why)
			r.Limit, r.LimitSamples, r.LimitMissed = c.Limits[i], state.share.Total, state.missed
			return r, true
		}
	}
	return Result{}, false
}
