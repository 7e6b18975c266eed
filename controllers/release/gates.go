// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// obstacle is why the traffic may not grow now.
type obstacle struct {
	reason v1alpha1.Reason
	what   string
	// goesOn is when it is gone, and look when to look again; zero when that is not known.
	goesOn, look time.Time
	// stalled obstacles stay until a user acts: what is the whole sentence then.
	stalled bool
}

// wait says what the release waits for, and where it stands meanwhile.
func (d *draft) wait(o *obstacle) {
	d.goesOn(o.goesOn)
	d.wake(o.look)
	if o.stalled {
		d.Wait(o.reason, "%s", o.what)
		d.State.Stalled = true
		notifyOnce(d, v1alpha1.NotifyWaiting, d.State.Message)
		return
	}
	switch step := d.status.Step; {
	case !d.begun():
		d.Wait(o.reason, "Revision %s is not released yet: %s.", d.revision, o.what)
	case step != nil && step.ProgrammedAt == nil:
		d.Wait(o.reason, "Step %s: %s. It begins when that is over.", step.Summary, o.what)
	default:
		d.Wait(o.reason, "%s; %s. %s", where(&d.snapshot), o.what, evidenceSentence(&d.snapshot))
	}
}

// open reports whether step i may begin: the one after the last step is the promotion.
// What is in the way is said; a hook that refuses ends the release.
func open(d *draft, i int, since time.Time) (opened, ended bool) {
	if o := growthObstacle(&d.snapshot); o != nil {
		d.wait(o)
		return false, false
	}
	d.wake(closesAt(&d.snapshot))
	if o := timeObstacle(&d.snapshot, i, since); o != nil {
		d.wait(o)
		return false, false
	}
	if i == 0 {
		if opened, ended := askHooks(d, v1alpha1.HookBeforeRelease, i); !opened {
			return false, ended
		}
	}
	if i >= len(d.steps) {
		return true, false
	}
	return askHooks(d, v1alpha1.HookBeforeStep, i)
}

// growthObstacle is why the canary may not get any more traffic now. Nothing here is
// ever asked before traffic is taken away.
func growthObstacle(s *snapshot) *obstacle {
	switch {
	case s.returning():
		return nil
	case s.Rollout.Spec.Paused:
		return &obstacle{reason: v1alpha1.ReasonPaused, what: "no further steps, since spec.paused is true"}
	case s.paused() && !s.accepted():
		return failureObstacle(s)
	}
	now := s.calendar.At(s.Now)
	if now.Open || finishes(s) && !now.Frozen {
		return nil
	}
	return &obstacle{reason: v1alpha1.ReasonWaitingForSchedule, what: "waiting, " + now.Reason, goesOn: now.Opens, look: now.Until}
}

// failureObstacle: a user has to decide.
func failureObstacle(s *snapshot) *obstacle {
	return &obstacle{reason: v1alpha1.ReasonAnalysisFailed, stalled: true, what: fmt.Sprintf(
		"%s, and the analysis failed: %s. Set spec.control to Abort, Skip or PromoteFull, since spec.strategy.onFailure is Pause.", where(s), s.verdict.Explain())}
}

// finishes reports whether a release that has begun goes on outside of its windows.
func finishes(s *snapshot) bool {
	schedule := s.Rollout.Spec.Schedule
	return s.begun() && schedule != nil && schedule.WhenClosed == v1alpha1.ClosedFinish
}

// closesAt is when an open window may close while pods start; zero when it does not.
func closesAt(s *snapshot) time.Time {
	if s.returning() || finishes(s) {
		return time.Time{}
	}
	return s.calendar.At(s.Now).Until
}

// timeObstacle is that the time that a step names has not come, counted from the end of
// the step before.
func timeObstacle(s *snapshot, i int, since time.Time) *obstacle {
	if i >= len(s.steps) || s.steps[i].at == "" {
		return nil
	}
	// A step that ends at the very time that the next one names does not wait for the
	// time after.
	at, found, err := s.calendar.Next(s.steps[i].at, since.Add(-time.Nanosecond))
	switch {
	case err != nil || !found:
		return &obstacle{reason: v1alpha1.ReasonWaitingForSchedule, what: fmt.Sprintf("waiting, since the time %q of the next step never comes", s.steps[i].at)}
	case s.Now.Before(at):
		return &obstacle{reason: v1alpha1.ReasonWaitingForSchedule, what: "the next step begins at " + dateTime(at), goesOn: at}
	}
	return nil
}

// admit lets a route be prepared now, and begins its deadline. What was asked of the
// router already is seen through; time that is held up does not count.
func admit(d *draft, r Route, pods int32) (admitted, ended bool) {
	s := d.status.Step
	if !underWay(&d.snapshot, r, pods) {
		if admitted, ended = grow(d); !admitted {
			s.PreparedAt = nil
			return false, ended
		}
	}
	if s.PreparedAt == nil {
		s.PreparedAt = new(d.micro())
	}
	return true, false
}

// underWay reports whether a route was asked for already.
func underWay(s *snapshot, r Route, pods int32) bool {
	if s.byReplicas && s.canary != nil && s.canary.Replicas == pods {
		// As many pods as the promotion needs don't mean that it has begun.
		return s.status.Step.PreparedAt != nil || !s.decided(v1alpha1.ActionPromote)
	}
	return s.asked(r)
}

// grow reports whether the traffic may grow now, and to all of it if that is what comes
// next. What is in the way is said.
func grow(d *draft) (may, ended bool) {
	o := growthObstacle(&d.snapshot)
	// Without traffic there would never be any other evidence.
	if o == nil && d.verdict.Reason == judge.ReasonSuspected && !d.accepted() && d.lastAsked().Weight > 0 {
		o = &obstacle{reason: v1alpha1.ReasonWaitingForEvidence, what: "waiting, since evidence against the canary came up after the step before", look: closesAt(&d.snapshot)}
	}
	if o != nil {
		d.wait(o)
		return false, false
	}
	d.wake(closesAt(&d.snapshot))
	if !takesAll(&d.snapshot) {
		return true, false
	}
	return askHooks(d, v1alpha1.HookBeforePromotion, len(d.steps))
}

// takesAll reports whether all traffic goes to the canary next: by the promotion, or
// by a step that leaves nothing for it.
func takesAll(s *snapshot) bool {
	if s.decided(v1alpha1.ActionPromote) {
		return !s.returning()
	}
	step := s.status.Step
	return !s.byReplicas && (step.Weight == fullWeight || step.HoldoutUntil != nil) && len(step.Matches) == 0
}

// where says how far the release is.
func where(s *snapshot) string {
	step := s.status.Step
	here := Route{Weight: step.Weight, Matches: step.Matches}
	if step.ProgrammedAt == nil {
		here = s.lastAsked()
	}
	return fmt.Sprintf("Step %s: %s goes to the canary", step.Summary, reached(s, here))
}

// reached is what the canary really gets. Without a router, that is the share of its
// pods.
func reached(s *snapshot, r Route) string {
	if !s.byReplicas || s.canary == nil {
		return r.share()
	}
	stable := int32(0)
	if rs := s.stable(); rs != nil {
		stable = rs.Available
	}
	got := share(s.canary.Available, stable)
	text := fmt.Sprintf("%d %% of the traffic (%d of %d pods)", got, s.canary.Available, s.canary.Available+stable)
	if got != r.Weight {
		text += fmt.Sprintf(" instead of %d %%", r.Weight)
	}
	return text
}
