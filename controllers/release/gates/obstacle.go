// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/evidence"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/state"
)

// Obstacle is why the traffic may not grow now.
type Obstacle struct {
	reason v1alpha1.Reason
	what   string
	// goesOn is when it is gone, and look when to look again; zero when that is not known.
	goesOn, look time.Time
	// stalled obstacles stay until a user acts: what is the whole sentence then.
	stalled bool
}

// WaitFor says what the release waits for, and where it stands meanwhile.
func WaitFor(d *state.Draft, o *Obstacle) {
	d.GoesOn(o.goesOn)
	d.Wake(o.look)
	if o.stalled {
		d.Wait(o.reason, "%s", o.what)
		d.State.Stalled = true
		record.NotifyOnce(d, v1alpha1.NotifyWaiting, d.State.Message)
		return
	}
	switch step := d.Status.Step; {
	case !d.Begun():
		d.Wait(o.reason, "Revision %s is not released yet: %s.", d.Revision, o.what)
	case step != nil && step.ProgrammedAt == nil:
		d.Wait(o.reason, "Step %s: %s. It begins when that is over.", step.Summary, o.what)
	default:
		d.Wait(o.reason, "%s; %s. %s", Where(&d.Snapshot), o.what, evidence.Sentence(&d.Snapshot))
	}
}

// GrowthObstacle is why the canary may not get any more traffic now. Nothing here is
// ever asked before traffic is removed.
func GrowthObstacle(s *state.Snapshot) *Obstacle {
	switch {
	case s.Returning():
		return nil
	case s.Rollout.Spec.Paused:
		return &Obstacle{reason: v1alpha1.ReasonPaused, what: "no further steps, since spec.paused is true"}
	case s.Paused() && !s.Accepted():
		return FailureObstacle(s)
	}
	now := s.Calendar.At(s.Now)
	if now.Open || finishes(s) && !now.Frozen {
		return nil
	}
	return &Obstacle{reason: v1alpha1.ReasonWaitingForSchedule, what: "waiting, " + now.Reason, goesOn: now.Opens, look: now.Until}
}

// FailureObstacle says that a user has to decide.
func FailureObstacle(s *state.Snapshot) *Obstacle {
	return &Obstacle{reason: v1alpha1.ReasonAnalysisFailed, stalled: true, what: fmt.Sprintf(
		"%s, and the analysis failed: %s. Set spec.control to Abort, Skip or PromoteFull, since spec.strategy.onFailure is Pause.", Where(s), s.Verdict.Explain())}
}

// finishes reports whether a release that has begun goes on outside of its windows.
func finishes(s *state.Snapshot) bool {
	schedule := s.Rollout.Spec.Schedule
	return s.Begun() && schedule != nil && schedule.WhenClosed == v1alpha1.ClosedFinish
}

// ClosesAt is when an open window may close while pods start; zero when it does not.
func ClosesAt(s *state.Snapshot) time.Time {
	if s.Returning() || finishes(s) {
		return time.Time{}
	}
	return s.Calendar.At(s.Now).Until
}

// timeObstacle is that the time that a step names has not come, counted from the end of
// the step before.
func timeObstacle(s *state.Snapshot, i int, since time.Time) *Obstacle {
	if i >= len(s.Steps) || s.Steps[i].At == "" {
		return nil
	}
	// A step that ends at the very time that the next one names does not wait for the
	// time after.
	at, found, err := s.Calendar.Next(s.Steps[i].At, since.Add(-time.Nanosecond))
	switch {
	case err != nil || !found:
		return &Obstacle{reason: v1alpha1.ReasonWaitingForSchedule, what: fmt.Sprintf("waiting, since no date matches the time %q of the next step", s.Steps[i].At)}
	case s.Now.Before(at):
		return &Obstacle{reason: v1alpha1.ReasonWaitingForSchedule, what: "the next step begins at " + state.DateTime(at), goesOn: at}
	}
	return nil
}
