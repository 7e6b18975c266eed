// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/analysis/policy"
)

// script does what it was told, one action for each window, and notes what it sees.
type script struct {
	actions map[int]policy.Action
	weights []int32
	history int
}

func (s *script) Next(w analysis.Window) policy.Action {
	s.weights = append(s.weights, w.Weight)
	if a, ok := s.actions[len(s.weights)-1]; ok {
		return a
	}
	return policy.Hold
}

func (s *script) Remember(w analysis.Window) {
	s.history++
	if w.Canary.Requests > 0 || !w.End.Before(epoch.Add(time.Nanosecond)) {
		s.history = -1_000_000
	}
}

// each is traffic in which every request of the canary fails.
var each = Traffic{Rate: always(100), Stable: always(0), Canary: always(1)}

func TestPlay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		actions map[int]policy.Action
		windows int
		want    Outcome
	}{
		{"a rollback ends the release", map[int]policy.Action{3: policy.RollBack}, 4, Outcome{RolledBack: 20 * time.Second, Promoted: never}},
		{"without an action it ends undecided", nil, 240, Outcome{RolledBack: never, Promoted: never}},
		{"an early promotion is watched until the planned end", map[int]policy.Action{11: policy.Promote}, 120, Outcome{RolledBack: never, Promoted: time.Minute}},
		{
			"and can still be rolled back",
			map[int]policy.Action{11: policy.Promote, 23: policy.RollBack},
			24,
			Outcome{RolledBack: 2 * time.Minute, Promoted: time.Minute},
		},
		{"a late promotion ends it", map[int]policy.Action{130: policy.Promote}, 131, Outcome{RolledBack: never, Promoted: 655 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{actions: tt.actions}
			got := play(s, each, newRandom(1, tt.name, 0))
			if got.Failed == 0 {
				t.Error("no failed requests were counted")
			}
			got.Failed = 0
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if len(s.weights) != tt.windows || s.history != int(History/analysis.WindowLength) {
				t.Errorf("%d windows after %d of history, want %d after %d", len(s.weights), s.history, tt.windows, History/analysis.WindowLength)
			}
		})
	}
}

func TestTheRuleMovesTheWeight(t *testing.T) {
	s := &script{actions: map[int]policy.Action{0: policy.Step, 1: policy.Step, 3: policy.Step, 5: policy.Promote, 7: policy.RollBack}}
	play(s, each, newRandom(1, "weights", 0))
	if diff := cmp.Diff([]int32{5, 10, 20, 20, 50, 50, 95, 95}, s.weights); diff != "" {
		t.Error(diff)
	}
}

func TestSerinTakesThePlan(t *testing.T) {
	var got []time.Duration
	for _, stage := range NewSerin(judge.Defaults()).stages {
		got = append(got, stage.Hold)
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, time.Minute, time.Minute, 7 * time.Minute}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSerinFindsADeadCanaryAndPromotesAGoodOne(t *testing.T) {
	if got := play(NewSerin(judge.Defaults()), each, newRandom(1, "dead", 0)); got.RolledBack != 10*time.Second {
		t.Errorf("rolled back after %v, want 10s", got.RolledBack)
	}
	good := Traffic{Rate: always(1000), Stable: always(.001), Canary: always(.001)}
	got := play(NewSerin(judge.Defaults()), good, newRandom(1, "good", 0))
	if got.RolledBack != never || got.Promoted < 3*time.Minute || got.Promoted > Planned/2 {
		t.Errorf("%+v, want an early promotion in the last step", got)
	}
}
