// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/gates"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// enter records what is to be released.
func enter(d *state.Draft) {
	d.Status.Canary = &v1alpha1.VersionStatus{Revision: d.Revision}
	d.EnterStep(0)
}

// edited reports whether the steps are not those that the record counts.
func edited(s *state.Snapshot) bool {
	now := s.Status.Step
	if now == nil || s.Decided(v1alpha1.ActionPromote) {
		return false
	}
	i := int(now.Index)
	return i >= len(s.Steps) || !s.StepAt(i).SameRequests(strategy.Route{Weight: now.Weight, Matches: now.Matches}) ||
		int(now.Of) != len(s.Steps) || now.Summary != s.Summary(i)
}

// relocate finds the present step again after the steps were edited: the one with
// the same weight, or else the nearest lower one. The weight never jumps up; where
// every step is higher, the release begins with the first one again, from no
// traffic at all.
func relocate(d *state.Draft) {
	now := d.Status.Step
	here := strategy.Route{Weight: now.Weight, Matches: now.Matches}
	if i := int(now.Index); i < len(d.Steps) && d.StepAt(i).SameRequests(here) {
		number(d, i)
		return
	}
	live := now.ProgrammedAt != nil
	if !live {
		here = d.LastRequested()
	}
	i := nearest(&d.Snapshot, here)
	switch {
	case i < 0:
		d.Note(false, "StepsEdited", "The steps were edited: the release starts again at the first one, without traffic")
		d.Status.Step = nil
		return
	case live && d.StepAt(i).SameRequests(here):
		number(d, i)
	default:
		d.EnterStep(i)
	}
	d.Note(false, "StepsEdited", "The steps were edited: the release goes on at step %s with %s", d.Summary(i), d.Steps[i].Share())
}

// number gives the present step its number among the edited steps.
func number(d *state.Draft, i int) {
	s := d.Status.Step
	s.Index, s.Of, s.Summary = int32(i), int32(len(d.Steps)), d.Summary(i) //nolint:gosec // at most 100 steps
}

// nearest is the first step that sends the same requests to the canary, else the
// last one that sends fewer, else -1.
func nearest(s *state.Snapshot, here strategy.Route) int {
	lower := -1
	for i := range s.Steps {
		step := s.StepAt(i)
		if step.SameRequests(here) {
			return i
		}
		if step.Exposure() < here.Exposure() || len(step.Matches) > 0 && step.Weight <= here.Weight {
			lower = i
		}
	}
	return lower
}

// startAgain enters the first step from no traffic, since all steps are higher than what
// the canary has.
func startAgain(d *state.Draft) (another bool) {
	routing.Tidy(d)
	if !routing.StopTraffic(d) || !stopShare(d) {
		return false
	}
	d.EnterStep(0)
	return true
}

// stopShare removes the canary's pods where pods are the traffic, and reports whether
// they are gone.
func stopShare(d *state.Draft) (done bool) {
	c := d.Canary
	if !d.ByReplicas || c == nil || c.Replicas == 0 && c.Existing == 0 {
		return true
	}
	if c.Replicas > 0 {
		routing.Scale(d, 0)
	}
	d.Wait(v1alpha1.ReasonPreparing, "The steps were edited, and all their weights are higher: removing the canary's pods before the first step.")
	return false
}

// begin starts the release as soon as nothing holds it.
func begin(d *state.Draft) (another bool) {
	routing.Tidy(d)
	back := record.InRollbackWindow(&d.Snapshot)
	if !back {
		if end := settlesAt(&d.Snapshot); d.Now.Before(end) {
			d.Wait(v1alpha1.ReasonPreparing, "Waiting a few seconds for changes of ConfigMaps and Secrets that belong to the same release.")
			d.Wake(end)
			return false
		}
		if opened, ended := gates.Open(d, 0, d.Status.Step.StartedAt.Time); !opened {
			return ended
		}
	}
	d.Status.Canary.StartedAt = new(metav1.NewTime(d.Now))
	d.Note(false, "ReleaseStarted", "Revision %s is being released in %d steps", d.Revision, len(d.Steps))
	record.Notify(d, v1alpha1.NotifyStarted, fmt.Sprintf("Revision %s is being released in %d steps.", d.Revision, len(d.Steps)))
	if back {
		d.EnterStep(len(d.Steps))
		record.DecidePromotion(d, state.ReasonRollbackWindow, "it is one of the latest versions that were stable, within spec.rollbackWindow")
	}
	return true
}
