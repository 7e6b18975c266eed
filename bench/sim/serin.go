// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// Serin is the judge with what the planner makes of its verdicts.
type Serin struct {
	stages    []policy.Stage
	state     judge.State
	index     int
	stepBegan time.Time
	promoted  bool
}

// NewSerin is Serin with these settings. The plan is that of everybody, with the
// minutes at the last weight as one step.
func NewSerin(config judge.Config) *Serin {
	s := &Serin{stepBegan: epoch}
	for _, weight := range weights {
		if n := len(s.stages); n > 0 && s.stages[n-1].Weight == weight {
			s.stages[n-1].Hold += time.Minute
			continue
		}
		s.stages = append(s.stages, policy.Stage{Weight: weight, Hold: time.Minute, Judge: config, Early: true})
	}
	s.state = s.state.StartStep(epoch)
	return s
}

// Remember takes a window from before the release, in which only stable had
// traffic.
func (s *Serin) Remember(w analysis.Window) {
	s.state, _ = s.stages[0].Judge.Next(s.state, w)
}

// Next judges one more window.
func (s *Serin) Next(w analysis.Window) policy.Action {
	stage := s.stages[s.index]
	var result judge.Result
	s.state, result = stage.Judge.Next(s.state, w)
	action := stage.React(policy.Progress{
		Held: w.End.Sub(s.stepBegan), Last: s.index == len(s.stages)-1, Promoted: s.promoted,
	}, result)
	switch action {
	case policy.Step:
		s.index++
		s.begin(w.End)
	case policy.Promote:
		s.promoted = true
		s.begin(w.End)
	case policy.Hold, policy.RollBack:
	}
	return action
}

// begin begins to count what the next step needs.
func (s *Serin) begin(now time.Time) {
	s.stepBegan = now
	s.state = s.state.StartStep(now)
}
