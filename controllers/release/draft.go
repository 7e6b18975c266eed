// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// statement is the one sentence about a Rollout, with what kstatus wants to know.
type statement struct {
	ready    bool
	stalled  bool
	reason   v1alpha1.Reason
	message  string
	progress bool
}

// draft is a Decision in the making. Decide makes it, and it never leaves it.
type draft struct {
	snapshot

	actions   []Action
	events    []Event
	questions []Question
	state     statement
	after     time.Duration
	next      time.Time // when the release goes on; zero when it waits for something else
	measure   bool
	// leaving is whether the traffic returns to the root Service, and no weight is in
	// effect any more.
	leaving bool
}

func newDraft(o Observation) *draft {
	d := &draft{snapshot: snapshot{Observation: o, status: *o.Rollout.Status.DeepCopy(), target: targetOf(o.Rollout)}}
	s := &d.snapshot
	clearOutbox(d)
	s.target.recognise(s)
	if s.Unreadable != "" {
		return d
	}
	var err error
	s.settings, err = parseSettings(&s.Rollout.Spec, s.RouterName, s.Freezes, s.Metrics)
	if !s.deleting() { // then what can't be read has its default
		s.refusal = refuse(s, err)
		s.byReplicas = s.byReplicas && (s.refusal == nil || s.Split.Presence == Absent) // a split that is there leads the traffic
	}
	s.revision, s.canary = s.target.identify(s)
	return d
}

func (d *draft) do(a ...Action) { d.actions = append(d.actions, a...) }

// say sets the sentence of this decision.
func (d *draft) say(reason v1alpha1.Reason, format string, args ...any) {
	d.state.reason, d.state.message = reason, strings.TrimSpace(fmt.Sprintf(format, args...))
}

// progress says what goes on.
func (d *draft) progress(reason v1alpha1.Reason, format string, args ...any) {
	d.say(reason, format, args...)
	d.state.progress = true
}

// stall says what a user has to do.
func (d *draft) stall(reason v1alpha1.Reason, format string, args ...any) {
	d.say(reason, format, args...)
	d.state.stalled = true
}

func (d *draft) note(warning bool, reason, format string, args ...any) {
	d.events = append(d.events, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// goesOn says when the release goes on if nothing else happens, and asks to be
// called then.
func (d *draft) goesOn(t time.Time) {
	if t.IsZero() {
		return
	}
	d.next = t
	d.wake(t)
}

// wake asks to be called again at t at the latest; never, if that is zero.
func (d *draft) wake(t time.Time) {
	if t.IsZero() {
		return
	}
	after := max(t.Sub(d.Now), time.Millisecond)
	if d.after == 0 || after < d.after {
		d.after = after
	}
}

// micro is now as the status stores it, rounded up: what began before it must
// not seem to have begun after.
func (s *snapshot) micro() metav1.MicroTime {
	t := s.Now.Truncate(time.Microsecond)
	if t.Before(s.Now) {
		t = t.Add(time.Microsecond)
	}
	return metav1.NewMicroTime(t)
}

// request asks for what the canary gets, and puts that on record.
func (d *draft) request(r Route) {
	if d.status.Weight == nil {
		d.status.Weight = &v1alpha1.WeightStatus{}
	}
	d.status.Weight.Requested, d.status.Weight.Matches, d.status.Weight.LeftAt = r.Weight, r.Matches, nil
	if !d.byReplicas && !d.asked(r) {
		d.target.write(d, r)
	}
}

// enterStep moves to a step; the weight and the hold of the step before stay in
// effect until this one's weight is.
func (d *draft) enterStep(i int) {
	r := Route{Weight: fullWeight}
	if i < len(d.steps) {
		r = d.stepAt(i).Route
	}
	d.status.Step = &v1alpha1.StepStatus{
		Index: int32(i), Of: int32(len(d.steps)), Summary: d.summary(i), //nolint:gosec // at most 100 steps
		Weight: r.Weight, Matches: r.Matches, StartedAt: d.micro(),
	}
}

func (s *snapshot) summary(i int) string {
	return fmt.Sprintf("%d/%d", min(i+1, len(s.steps)), len(s.steps))
}
