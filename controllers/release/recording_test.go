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
	"github.com/serin-dev/serin/controllers/release/tape"
)

// recorded stores the recordings of a world, as the shell does, and judges each again when
// its release has ended.
type recorded struct {
	tape.Tape
	w        *world
	stored   map[string][]recording.Line
	restarts int
	// writes are how often something was stored, and lines and gaps are of the releases
	// that ended.
	writes, lines, gaps int
}

// record begins to record a world.
func (w *world) record() *recorded {
	w.recorded = &recorded{w: w, stored: map[string][]recording.Line{}}
	return w.recorded
}

// restart is what a crash of the operator does to the recording.
func (t *recorded) restart() { t.Tape, t.restarts = tape.Tape{}, t.restarts+1 }

// look records a look at the Rollout, whose status was this before.
func (t *recorded) look(before *v1alpha1.RolloutStatus, d *state.Decision) {
	t.w.t.Helper()
	if len(d.Entries) > 0 {
		t.checkAction(before, d)
	}
	if d.LeftOut {
		t.w.reportedAt = t.w.now
	}
	if t.Misses(d) {
		t.Continue(d.Recorded, t.stored[recording.Key(d.Recorded.Revision, d.Recorded.Began)])
	}
	texts, err := t.Look(before, d)
	if err != nil {
		t.w.t.Fatal(err)
	}
	if len(texts) > 0 {
		t.writes++
	}
	for key, text := range texts {
		if delete(t.stored, key); text != "" {
			t.store(key, text, len(before.History) == 0 || before.History[0].EndedAt != d.Status.History[0].EndedAt)
		}
	}
}

func (t *recorded) store(key, text string, ended bool) {
	t.w.t.Helper()
	lines, err := recording.ReadText(text)
	if err != nil {
		t.w.t.Fatalf("the recording can't be read: %v", err)
	}
	if t.stored[key] = lines; ended {
		t.playAgain(lines)
	}
	if len(t.stored) > v1alpha1.MaxRecordings {
		t.w.t.Fatalf("%d recordings are kept", len(t.stored))
	}
}

// playAgain wants the same verdicts and actions from the replay, with no more help than
// what a restart needs.
func (t *recorded) playAgain(lines []recording.Line) {
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
func (t *recorded) checkAction(before *v1alpha1.RolloutStatus, d *state.Decision) {
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
				kept := w.record()
				w.draw(r)
				w.ready()
				for range 4 + r.IntN(8) {
					w.run(1 + r.IntN(60))
					w.disturb(r)
				}
				w.comeToRest()
				if kept.gaps > kept.restarts {
					t.Fatalf("seed %d: %d gaps by %d restarts", seed, kept.gaps, kept.restarts)
				}
				lines, gaps = lines+kept.lines, gaps+kept.gaps
			}
			t.Logf("%d lines, %d gaps", lines, gaps)
			if lines == 0 && n >= 10*parts {
				t.Error("nothing was recorded")
			}
		})
	}
}

func TestARestartLosesTheWindowsSinceTheRecordingWasStored(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 10, Hold: "2m"}, {Weight: 50, Hold: "1m"}}
	kept := w.record()
	w.ready()
	w.setTemplate("v2")
	w.until("the second step is live", func() bool {
		s := w.known().Step
		return s != nil && s.Index == 1 && s.ProgrammedAt != nil
	})
	w.run(17)
	w.windows, w.lookout = nil, state.Lookout{}
	kept.restart()
	w.ready()
	if kept.gaps != 1 || len(kept.stored) != 1 {
		t.Fatalf("%d gaps are said in %d recordings", kept.gaps, len(kept.stored))
	}
	for _, lines := range kept.stored {
		var windows [2]int
		for _, l := range lines {
			if i := *l.Step; i < len(windows) {
				windows[i]++
			}
		}
		if windows[0] != 24 || windows[1] != 9 {
			t.Errorf("of the 24 and 12 windows of the steps, %v are recorded", windows)
		}
	}
}

// A recording is stored in place of writes of figures: these are the writes of the status
// that releases took before anything was recorded.
func TestARecordedReleaseWritesNoMoreOften(t *testing.T) {
	for name, test := range map[string]struct {
		holds  []v1alpha1.Duration
		bad    int64
		before int
	}{
		"a good version":                  {holds: []v1alpha1.Duration{"30s", "30s"}, before: 12},
		"a bad version":                   {holds: []v1alpha1.Duration{"30s", "30s"}, bad: 50, before: 6},
		"a version that is a little bad":  {holds: []v1alpha1.Duration{"30s", "5m"}, bad: 2, before: 7},
		"a good version in long steps":    {holds: []v1alpha1.Duration{"2m", "5m", "10m"}, before: 78},
		"a good version in steps of none": {holds: []v1alpha1.Duration{"0s", "0s", "0s"}, before: 11},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ro.Spec.Strategy.Steps = nil
			for i, hold := range test.holds {
				w.ro.Spec.Strategy.Steps = append(w.ro.Spec.Strategy.Steps, v1alpha1.Step{Weight: int32(10 + 20*i), Hold: hold})
			}
			kept := w.record()
			w.ready()
			w.failures["v2"] = test.bad
			w.setTemplate("v2")
			before := w.written
			w.until("it has ended", func() bool { return len(w.ro.Status.History) > 1 })
			w.run(60)
			if got := w.written - before + kept.writes; got > test.before || len(kept.stored) != 1 {
				t.Errorf("%d statuses and %d recordings are written, %d statuses before", w.written-before, kept.writes, test.before)
			}
		})
	}
}
