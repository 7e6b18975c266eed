// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// enter records what is to be released.
func enter(d *draft) {
	d.status.Canary = &v1alpha1.VersionStatus{Revision: d.revision}
	d.enterStep(0)
}

// supersede ends a release whose version was replaced, if it has not ended already. One
// that never began leaves no trace.
func supersede(d *draft) {
	previous := d.status.Canary.Revision
	if d.begun() && !d.decided(v1alpha1.ActionRollBack) {
		const why = "A newer version superseded it."
		notifyOutcome(d, v1alpha1.NotifySuperseded, why)
		closeRelease(d, v1alpha1.OutcomeSuperseded, previous, why)
		d.Note(false, v1alpha1.ReasonSuperseded, "Revision %s is superseded by the newer revision %s", previous, d.revision)
	}
	forgetRelease(d)
}

// forgetRelease clears what belongs to one release.
func forgetRelease(d *draft) {
	keepDispersion(d)
	st := &d.status
	st.Canary, st.Step, st.Decision, st.Analysis = nil, nil, nil, nil
	st.Interventions, st.Hooks = nil, nil
}

// edited reports whether the steps are not those that the record counts.
func edited(s *snapshot) bool {
	now := s.status.Step
	if now == nil || s.decided(v1alpha1.ActionPromote) {
		return false
	}
	i := int(now.Index)
	return i >= len(s.steps) || !s.stepAt(i).sameRequests(Route{Weight: now.Weight, Matches: now.Matches}) ||
		int(now.Of) != len(s.steps) || now.Summary != s.summary(i)
}

// relocate finds the present step again after the steps were edited: the one with
// the same weight, or else the nearest lower one. The weight never jumps up; where
// every step is higher, the release begins with the first one again, from no
// traffic at all.
func relocate(d *draft) {
	now := d.status.Step
	here := Route{Weight: now.Weight, Matches: now.Matches}
	if i := int(now.Index); i < len(d.steps) && d.stepAt(i).sameRequests(here) {
		d.number(i)
		return
	}
	inEffect := now.ProgrammedAt != nil
	if !inEffect {
		here = d.lastAsked()
	}
	i := nearest(&d.snapshot, here)
	switch {
	case i < 0:
		d.Note(false, "StepsEdited", "The steps were edited: the release goes on at the first one, from no traffic")
		d.status.Step = nil
		return
	case inEffect && d.stepAt(i).sameRequests(here):
		d.number(i)
	default:
		d.enterStep(i)
	}
	d.Note(false, "StepsEdited", "The steps were edited: the release goes on at step %s with %s", d.summary(i), d.steps[i].share())
}

// number gives the present step its number among the edited steps.
func (d *draft) number(i int) {
	s := d.status.Step
	s.Index, s.Of, s.Summary = int32(i), int32(len(d.steps)), d.summary(i) //nolint:gosec // at most 100 steps
}

// nearest is the first step that sends the same requests to the canary, else the
// last one that sends fewer, else -1.
func nearest(s *snapshot, here Route) int {
	lower := -1
	for i := range s.steps {
		step := s.stepAt(i)
		if step.sameRequests(here) {
			return i
		}
		if step.exposure() < here.exposure() || len(step.Matches) > 0 && step.Weight <= here.Weight {
			lower = i
		}
	}
	return lower
}

// startAgain enters the first step from no traffic, since all steps are higher than what
// the canary has.
func startAgain(d *draft) (another bool) {
	tidy(d)
	if !stopTraffic(d) || !stopShare(d) {
		return false
	}
	d.enterStep(0)
	return true
}

// stopShare takes the canary's pods out where pods are the traffic, and reports whether
// they are gone.
func stopShare(d *draft) (done bool) {
	c := d.canary
	if !d.byReplicas || c == nil || c.Replicas == 0 && c.Existing == 0 {
		return true
	}
	if c.Replicas > 0 {
		scale(d, 0)
	}
	d.Wait(v1alpha1.ReasonPreparing, "The steps were edited, and all of them are higher: removing the canary's pods before the first one.")
	return false
}

// begin starts the release as soon as nothing is in its way.
func begin(d *draft) (another bool) {
	tidy(d)
	back := inRollbackWindow(&d.snapshot)
	if !back {
		if end := settlesAt(&d.snapshot); d.Now.Before(end) {
			d.Wait(v1alpha1.ReasonPreparing, "Waiting for a moment whether a ConfigMap or Secret changes too.")
			d.wake(end)
			return false
		}
		if opened, ended := open(d, 0, d.status.Step.StartedAt.Time); !opened {
			return ended
		}
	}
	d.status.Canary.StartedAt = new(metav1.NewTime(d.Now))
	d.Note(false, "ReleaseStarted", "Revision %s is being released in %d steps", d.revision, len(d.steps))
	notify(d, v1alpha1.NotifyStarted, fmt.Sprintf("Revision %s is being released in %d steps.", d.revision, len(d.steps)))
	if back {
		d.enterStep(len(d.steps))
		decidePromotion(d, reasonRollbackWindow, "it is one of the latest versions that were stable, within spec.rollbackWindow")
	}
	return true
}
