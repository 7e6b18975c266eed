// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

func newDraft(o state.Observation) *state.Draft {
	d := &state.Draft{Snapshot: state.Snapshot{Observation: o, Status: *o.Rollout.Status.DeepCopy()}}
	s := &d.Snapshot
	record.ClearOutbox(d)
	var err error
	if s.Unreadable == "" {
		s.Settings, err = strategy.Parse(&s.Rollout.Spec, s.RouterName, s.Freezes, s.Metrics)
	}
	s.Facts = targetOf(s.Rollout).Observe(s)
	if !s.Deleting() { // then what can't be read has its default
		s.Refusal = refuse(s, err)
		if s.Refusal != nil && s.Split.Presence != kit.Absent { // a split that is there leads the traffic
			s.ByReplicas, s.Unmeasured = false, false
		}
	}
	return d
}
