// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// draft is a Decision in the making. Decide makes it, and it never leaves it.
type draft struct {
	snapshot

	kit.Draft

	questions []Question
	next      time.Time // when the release goes on; zero when it waits for something else
	measure   bool
	// leaving is whether the traffic returns to the root Service, and no weight is in
	// effect any more.
	leaving bool
}

func newDraft(o Observation) *draft {
	d := &draft{snapshot: snapshot{Observation: o, status: *o.Rollout.Status.DeepCopy()}}
	s := &d.snapshot
	clearOutbox(d)
	var err error
	if s.Unreadable == "" {
		s.settings, err = parseSettings(&s.Rollout.Spec, s.RouterName, s.Freezes, s.Metrics)
	}
	s.facts = targetOf(s.Rollout).observe(s)
	if !s.deleting() { // then what can't be read has its default
		s.refusal = refuse(s, err)
		s.byReplicas = s.byReplicas && (s.refusal == nil || s.Split.Presence == kit.Absent) // a split that is there leads the traffic
	}
	return d
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
	d.WakeIn(t.Sub(d.Now))
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
		d.writer.write(d, r)
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
