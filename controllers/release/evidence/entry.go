// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"time"

	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/controllers/release/state"
)

// StageOf is step i as the policy knows it. After the last one, only the judge is left.
func StageOf(s *state.Snapshot, i int) policy.Stage {
	if i >= len(s.Steps) {
		return policy.Stage{Judge: judgeOf(s)}
	}
	step := s.StepAt(i)
	return policy.Stage{
		Weight: step.Weight, Hold: step.Hold, Judge: judgeOf(s), OnInconclusive: policy.Inconclusive(step.OnInconclusive), Early: s.Early,
		Untested: s.Unmeasured || step.Weight == 0 && len(step.Judge.Limits) == 0,
	}
}

// ProgressOf is how far the present step, which is live, has come.
func ProgressOf(s *state.Snapshot, i int) policy.Progress {
	now := s.Status.Step
	holdout := now.HoldoutUntil != nil
	return policy.Progress{
		Held: s.Now.Sub(now.ProgrammedAt.Time), Last: i == len(s.Steps)-1, Holdout: holdout,
		Ended: now.PassedAt != nil || holdout && !s.Now.Before(now.HoldoutUntil.Time),
	}
}

// enter notes what was judged, for the recording. Numbers that became known at the same
// time are one entry.
func enter(d *state.Draft, e recording.Entry) {
	if n := len(d.Entries); n > 0 && e.Window == nil && d.Entries[n-1].Window == nil && d.Entries[n-1].Known.Equal(e.Known) {
		last := &d.Entries[n-1]
		last.Values, last.Result = append(last.Values, e.Values...), e.Result
		return
	}
	i := int(d.Status.Step.Index)
	e.Step, e.Stage, e.Action = i, StageOf(&d.Snapshot, i), policy.Hold
	if live(&d.Snapshot) {
		p := ProgressOf(&d.Snapshot, i)
		e.Live, e.Last, e.Ended, e.Holdout = d.Status.Step.ProgrammedAt.Time, p.Last, p.Ended, p.Holdout
	}
	d.Entries = append(d.Entries, e)
}

// look completes the last entry with what the operator makes of it.
func look(d *state.Draft) {
	if len(d.Entries) == 0 {
		return
	}
	progress := policy.Progress{Promoted: true} // there is no step that could end
	if live(&d.Snapshot) {
		progress = ProgressOf(&d.Snapshot, int(d.Status.Step.Index))
	}
	last := &d.Entries[len(d.Entries)-1]
	last.At, last.Result, last.Action = d.Now, d.Verdict, last.Stage.React(progress, d.Verdict)
	d.Recorded = recording.Release{
		Rollout: d.Rollout.Namespace + "/" + d.Rollout.Name, Revision: d.Status.Canary.Revision,
		Began: began(&d.Snapshot),
	}
}

// began is when the release did, as the API stores it.
func began(s *state.Snapshot) time.Time { return s.Status.Canary.StartedAt.UTC().Truncate(time.Second) }

// live reports whether the weight of a step is live.
func live(s *state.Snapshot) bool {
	step := s.Status.Step
	return step.ProgrammedAt != nil && int(step.Index) < len(s.Steps)
}
