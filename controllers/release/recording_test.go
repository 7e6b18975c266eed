// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/serin-dev/serin/analysis/policy"
	"github.com/serin-dev/serin/analysis/recording"
	"github.com/serin-dev/serin/analysis/replay"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// tape records the releases of a world, as the shell does, and judges each again when it
// ends.
type tape struct {
	w        *world
	recorder *recording.Recorder
	stored   map[recording.Release][]recording.Line
	restarts int
	// lines and gaps of the releases that ended.
	lines, gaps int
}

// record begins to record a world.
func (w *world) record() *tape {
	w.tape = &tape{w: w, stored: map[recording.Release][]recording.Line{}}
	return w.tape
}

// restart is what a crash of the operator does to the recording.
func (t *tape) restart() { t.recorder, t.restarts = nil, t.restarts+1 }

// look records a look at the Rollout, whose status was this before.
func (t *tape) look(before *v1alpha1.RolloutStatus, d *state.Decision) {
	t.w.t.Helper()
	if len(d.Entries) > 0 {
		t.checkAction(before, d)
		if t.recorder == nil || t.recorder.Release() != d.Recorded {
			t.recorder = recording.New(d.Recorded)
			if !d.Entries[0].Before.End().IsZero() {
				t.recorder = recording.Continue(d.Recorded, t.stored[d.Recorded])
			}
		}
		for _, e := range d.Entries {
			t.recorder.Add(e)
		}
	}
	ended := len(d.Status.History) > 0 && (len(before.History) == 0 || before.History[0].EndedAt != d.Status.History[0].EndedAt)
	stepped := d.Status.Step == nil || before.Step == nil || d.Status.Step.Index != before.Step.Index
	if t.recorder != nil && (ended || stepped) {
		t.store(ended)
	}
}

func (t *tape) store(ended bool) {
	t.w.t.Helper()
	text, err := t.recorder.Text()
	if err != nil {
		t.w.t.Fatal(err)
	}
	lines, err := recording.ReadText(text)
	if err != nil {
		t.w.t.Fatalf("the recording can't be read: %v", err)
	}
	t.stored[t.recorder.Release()] = lines
	if ended {
		t.playAgain(lines)
		t.recorder = nil
	}
}

// playAgain wants the same verdicts and actions from the replay, with no more help than
// what a restart needs.
func (t *tape) playAgain(lines []recording.Line) {
	t.w.t.Helper()
	for i, l := range lines {
		t.lines++
		if l.Gap != "" {
			t.gaps++
		}
		if l.Resume != "" && l.Gap == "" {
			t.w.t.Fatalf("line %d begins from a stored state without a restart\n%s", i+1, t.w.tail())
		}
	}
	var file bytes.Buffer
	if err := recording.Write(lines, &file); err != nil {
		t.w.t.Fatal(err)
	}
	windows, err := replay.Read(&file)
	if err != nil {
		t.w.t.Fatal(err)
	}
	i := 0
	err = replay.Run(replay.DefaultPlan(), windows, func(got replay.Result) error {
		said := lines[i].Judged
		if got.Differs || got.Verdict != said.Verdict || got.Action != said.Action || got.Rollback != said.Rollback || got.Promote != said.Promote {
			t.w.t.Fatalf("line %d is judged otherwise: %+v, recorded %+v\n%s", i+1, got, *said, t.w.tail())
		}
		i++
		return nil
	})
	if err != nil || i != len(lines) {
		t.w.t.Fatalf("%d of %d lines were judged again: %v", i, len(lines), err)
	}
}

// checkAction wants the action on record to be what the operator does.
func (t *tape) checkAction(before *v1alpha1.RolloutStatus, d *state.Decision) {
	t.w.t.Helper()
	last := d.Entries[len(d.Entries)-1]
	pauses := t.w.ro.Spec.Strategy.OnFailure == v1alpha1.OnFailurePause
	rolledBack := func(s *v1alpha1.RolloutStatus) bool {
		return s.Decision != nil && s.Decision.Action == v1alpha1.ActionRollBack
	}
	accepted := before.Step != nil && (before.Step.FailureAccepted || before.Step.AnalysisSkipped)
	if last.Action == policy.RollBack && !pauses && !accepted && !rolledBack(&d.Status) {
		t.w.t.Fatalf("RollBack is on record, and nothing is rolled back\n%s", t.w.tail())
	}
	byVerdict := rolledBack(&d.Status) && !rolledBack(before) && d.Status.Decision.Reason == string(last.Result.Reason)
	if byVerdict && last.Action != policy.RollBack {
		t.w.t.Fatalf("it is rolled back, and %s is on record\n%s", last.Action, t.w.tail())
	}
}

// TestARecordingComesOutAgain plays random histories and judges the recording of each
// release again.
func TestARecordingComesOutAgain(t *testing.T) {
	n := *histories / 10
	if testing.Short() {
		n /= 10
	}
	const parts = 10
	for part := range parts {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			lines, gaps := 0, 0
			for seed := part; seed < n; seed += parts {
				r := rand.New(rand.NewPCG(uint64(seed), 7))
				w := newWorld(t)
				tape := w.record()
				w.draw(r)
				w.ready()
				for range 4 + r.IntN(8) {
					w.run(1 + r.IntN(60))
					w.disturb(r)
				}
				w.comeToRest()
				if tape.gaps > tape.restarts {
					t.Fatalf("seed %d: %d gaps by %d restarts", seed, tape.gaps, tape.restarts)
				}
				lines, gaps = lines+tape.lines, gaps+tape.gaps
			}
			t.Logf("%d lines, %d gaps", lines, gaps)
			if lines == 0 && n >= parts {
				t.Error("nothing was recorded")
			}
		})
	}
}

func TestARestartLosesNoMoreThanTheWindowsSinceTheLastStep(t *testing.T) {
	w := newWorld(t)
	tape := w.record()
	w.ready()
	w.setTemplate("v2")
	w.until("the second step is live", func() bool {
		s := w.ro.Status.Step
		return s != nil && s.Index == 1 && s.ProgrammedAt != nil
	})
	w.run(17)
	w.windows, w.lookout = nil, state.Lookout{}
	tape.restart()
	w.ready()
	if tape.gaps != 1 {
		t.Fatalf("%d gaps are said", tape.gaps)
	}
	for of, lines := range tape.stored {
		var steps [2]int
		for _, l := range lines {
			if i := *l.Step; i < len(steps) {
				steps[i]++
			}
		}
		if of.Revision == "sv2" && (steps[0] != 6 || steps[1] < 2 || steps[1] > 5) {
			t.Errorf("windows of each step: %v", steps)
		}
	}
}
