// SPDX-License-Identifier: Apache-2.0

package release

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// stopTraffic sends all traffic to stable, and reports whether that is in effect.
func stopTraffic(d *draft) (done bool) {
	s := &d.snapshot
	if withoutTraffic(s) {
		return true
	}
	d.request(Route{})
	if stopped(s) {
		return true
	}
	if m := d.maker; m != nil {
		m.repairBackends(d)
	}
	d.Wait(v1alpha1.ReasonRollingBack, "Sending all traffic to stable: %s.", trafficWait(s, Route{}))
	return false
}

// stopped reports whether the canary gets no traffic.
func stopped(s *snapshot) bool { return withoutTraffic(s) || s.routed(Route{}) || unreachable(s) }

// withoutTraffic reports whether there is nothing that could send the canary traffic.
func withoutTraffic(s *snapshot) bool {
	served := s.Split.Presence != kit.Absent && s.Split.Ours && !s.Split.Unserved && s.Service.Presence != kit.Absent
	return !served || s.Split.Deleting && s.Split.Observed <= 0 || s.unconfirmed || s.canaryIsStable()
}

// unreachable reports whether no request can reach a canary, although the router
// can't confirm it: there is none, and nothing ever was in effect.
func unreachable(s *snapshot) bool {
	return s.scales() && s.asked(Route{}) && s.Split.Observed < 0 && !s.canaryPods(nil)
}

// tampered reports whether somebody else wrote what goes to the canary. Whatever that
// says, it is never taken for progress.
func tampered(s *snapshot) bool {
	last, now := s.lastAsked(), s.Split.Requested
	if s.byReplicas || s.Split.Presence != kit.Present || now.sameRequests(last) {
		return false
	}
	if !grows(s) || growthObstacle(s) != nil {
		return true
	}
	switch {
	case s.canary == nil || s.canary.Available < canaryReplicas(last.Weight, s.Workload.Replicas):
		return false // the step sees to the pods first
	case s.status.Step.ProgrammedAt == nil && s.nextRoute().sameRequests(last):
		return false // it is what the step is about to write
	}
	return true
}

// grows reports whether to set the canary's traffic back gives it more. That needs what
// every growth needs: the route on record may be one that was never written, since
// the operator crashed in between.
func grows(s *snapshot) bool {
	return s.Split.Requested.Weight >= 0 && s.Split.Requested.below(s.lastAsked())
}

// restoreRoute writes again what Serin asked for last.
func restoreRoute(d *draft) (another bool) {
	d.State.Progress = true
	upkeep(d)
	if grows(&d.snapshot) {
		if o := growthObstacle(&d.snapshot); o != nil {
			d.wait(o)
			d.status.Step.PreparedAt, d.status.Step.InterruptedAt = nil, nil
			return false
		}
		d.wake(closesAt(&d.snapshot))
	}
	last := d.lastAsked()
	d.request(last)
	d.Say(v1alpha1.ReasonWaitingForTraffic, "Step %s: %s is not what Serin asked for last: setting it back to %s.", d.status.Step.Summary, d.place, last.share())
	noteLoss(d)
	return orTooLate(d)
}

// upkeep puts right what nothing has to wait for.
func upkeep(d *draft) {
	tidy(d)
	if m := d.maker; m != nil {
		m.keepBackends(d)
	}
}

// tidy removes what earlier releases left.
func tidy(d *draft) {
	if m := d.maker; m != nil {
		m.tidy(d)
	}
}

// scale sees to it that the canary has so many pods, where Serin makes them.
func scale(d *draft, want int32) {
	if m := d.maker; m != nil {
		m.scale(d, want)
	}
}

// trafficWait says why a route is not in effect yet.
func trafficWait(s *snapshot, r Route) string {
	if !s.asked(r) {
		return "the router has not confirmed it yet"
	}
	return s.Split.Why()
}

// splitWriter asks the router of the split.
type splitWriter struct{}

func (splitWriter) write(d *draft, r Route) { d.Do(ApplySplit{r}) }

// removeSplit deletes the TrafficSplit, and reports whether it is gone.
func removeSplit(d *draft) (gone bool) { return versions.DropSplit(&d.Draft, &d.Split.Split, "") }

// cleanUp returns the traffic to the root Service and removes what was made for
// the release. It reports whether all of it is gone.
func cleanUp(d *draft) (done bool) {
	d.status.Step, d.leaving = nil, true
	if !removeSplit(d) {
		d.Wait(v1alpha1.ReasonCleaningUp, "Returning the traffic to the Service %q.", d.Rollout.Spec.Service)
		return false
	}
	if m := d.maker; m != nil && !m.removeBackends(d) {
		return false
	}
	d.status.Weight, d.leaving = nil, false
	return true
}
