// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// inFirstStep is a release whose first weight has just become live.
func inFirstStep(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.ready()
	w.setTemplate("v2")
	w.until("the first weight is live", func() bool {
		s := w.known().Step
		return s != nil && s.ProgrammedAt != nil
	})
	return w
}

func TestThatAWeightIsLiveIsWrittenLater(t *testing.T) {
	w := inFirstStep(t)
	live, written := *w.known().Step.ProgrammedAt, w.written
	if w.ro.Status.Step.ProgrammedAt != nil {
		t.Error("it is written at once")
	}
	w.run(25)
	if s := w.ro.Status.Step; s.Index != 0 || s.ProgrammedAt == nil || !s.ProgrammedAt.Equal(&live) || w.written != written+1 {
		t.Errorf("after %d writes: %+v, want it live since %s", w.written-written, s, live)
	}
}

func TestAReleaseWritesItsStatusForWhatMustNotBeForgotten(t *testing.T) {
	w := newWorld(t)
	w.steps(v1alpha1.Step{Weight: 20, Hold: "20s"}, v1alpha1.Step{Weight: 50, Hold: "20s"})
	w.ready()
	w.setTemplate("v2")
	before := w.written
	w.run(2)
	w.ready()
	// Begun, decided twice, each time with a verdict before, handed over, promoted, ready.
	if got := w.written - before; got > 8 {
		t.Errorf("%d statuses were written\n%s", got, w.tail())
	}
}

// What was not written is found out again, so the step takes longer, and never less.
func TestARestartBeginsTheHoldOfAStepAnewWhoseWeightIsNotOnRecord(t *testing.T) {
	w := inFirstStep(t)
	w.run(15)
	w.forget()
	restarted := w.now
	w.run(2)
	if s := w.known().Step; s.Index != 0 || s.ProgrammedAt.Time.Before(restarted) {
		t.Fatalf("live since %s, want after %s", s.ProgrammedAt, restarted)
	}
	w.until("the next weight", func() bool { return w.split.requested.Weight > 10 })
	if held := w.now.Sub(restarted); held < 30*time.Second {
		t.Errorf("the hold of 30s took %s after the restart\n%s", held, w.tail())
	}
}

func TestAStatusThatMayWaitIsNotLookedAtBeforeTheReleaseGoesOn(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	for name, test := range map[string]struct {
		reported time.Duration // ago; 0 for never
		next     *metav1.Time
		leaveOut bool
		want     time.Duration
		left     bool
	}{
		"it may be written in 20s, and goes on before":  {10 * time.Second, in(5 * time.Second), false, 20 * time.Second, false},
		"it goes on soon after":                         {10 * time.Second, in(45 * time.Second), false, 46 * time.Second, false},
		"it goes on long after":                         {10 * time.Second, in(50 * time.Second), false, 20 * time.Second, false},
		"it does not go on by itself":                   {10 * time.Second, nil, false, 20 * time.Second, false},
		"a recording is stored in its place by then":    {10 * time.Second, in(45 * time.Second), true, 20 * time.Second, false},
		"it may be written now, and goes on soon":       {time.Minute, in(25 * time.Second), false, 26 * time.Second, false},
		"it may be written now, and goes on much later": {time.Minute, in(time.Hour), false, 0, false},
		"a recording is stored in its place now":        {time.Minute, nil, true, quietTime, true},
		"it was never written":                          {0, in(25 * time.Second), false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state.Snapshot{Observation: state.Observation{Now: now, LeaveOut: test.leaveOut}}
			if test.reported > 0 {
				s.ReportedAt = now.Add(-test.reported)
			}
			if got, left := timeLeft(s, test.next); got != test.want || left != test.left {
				t.Errorf("it waits for %s, left out %v; want %s, %v", got, left, test.want, test.left)
			}
		})
	}
}

func TestWhatAnEarlierRolloutLeftIsToldAgainOnlyAfterAWhile(t *testing.T) {
	ro, at := &v1alpha1.Rollout{}, time.Unix(1e9, 0)
	first := AwaitEarlier(state.Observation{Rollout: ro, Now: at}, "First.")
	if first.Later {
		t.Error("it is not told at once")
	}
	ro.Status = first.Status
	if again := AwaitEarlier(state.Observation{Rollout: ro, Now: at.Add(time.Hour), ReportedAt: at}, "First."); !apiequality.Semantic.DeepEqual(again.Status, first.Status) {
		t.Errorf("the same is told again: %+v", again.Status)
	}
	for after, later := range map[time.Duration]bool{quietTime - time.Second: true, quietTime: false} {
		d := AwaitEarlier(state.Observation{Rollout: ro, Now: at.Add(after), ReportedAt: at}, "Second.")
		if d.Later != later || later && d.After != quietTime-after {
			t.Errorf("%s after the first sentence: later %v, in %s", after, d.Later, d.After)
		}
	}
}
