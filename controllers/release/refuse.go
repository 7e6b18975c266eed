// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/evidence"
	"github.com/serin-dev/serin/controllers/release/gates"
	"github.com/serin-dev/serin/controllers/release/routing"
	"github.com/serin-dev/serin/controllers/release/state"
)

// A Rollout that can't be served begins nothing and goes on with nothing. What it has
// begun it can still undo: the status and the running objects say all that this needs.
//
//	meanwhile                                       | then
//	------------------------------------------------+---------------------------------------
//	nothing was in progress                         | nothing is touched
//	the analysis fails, or its pods are gone        | rolled back
//	a user aborts                                   | rolled back
//	the split is gone, or no router serves it       | rolled back: nothing governs the traffic
//	another actor gives the canary more traffic     | removed again
//	the template is stable's again, or another one  | the canary is removed
//	it was being rolled back, or was handed over    | completed
//	the Deployment, or the Service, does not exist  | nothing: there is nothing to go back to
//	otherwise                                       | the release stays where it is

// refuse says what a user has to fix before Serin can go on; nil when it can.
func refuse(s *state.Snapshot, err error) *kit.Statement {
	spec := &s.Rollout.Spec
	switch {
	case err != nil:
		return state.Refuse(v1alpha1.ReasonInvalidSpec, "%s.", err)
	case s.Rival != "":
		return state.Refuse(v1alpha1.ReasonConflict, "The older Rollout %q already claims the %s %q or the Service %s; delete one of the two Rollouts.", s.Rival, cmp.Or(spec.WorkloadRef.Kind, v1alpha1.KindDeployment), spec.WorkloadRef.Name, claimedServices(spec))
	case !s.RouterOffered:
		return state.Refuse(v1alpha1.ReasonRouterUnavailable, "spec.router: this operator does not offer the router %q; leave the field out to use its default.", s.RouterName)
	case s.Unmatchable != "" && slices.ContainsFunc(spec.Strategy.Steps, func(s v1alpha1.Step) bool { return len(s.Matches) > 0 }):
		return state.Refuse(v1alpha1.ReasonRouterUnavailable, "spec.strategy.steps: matches: %s.", s.Unmatchable)
	}
	if why := refuseObjects(s); why != nil {
		return why
	}
	return s.Unfit
}

// claimedServices names the Services that only one Rollout may have.
func claimedServices(spec *v1alpha1.RolloutSpec) string {
	if preview := state.PreviewService(spec); preview != "" {
		return fmt.Sprintf("%q or %q", spec.Service, preview)
	}
	return fmt.Sprintf("%q", spec.Service)
}

// refuseObjects says what is wrong with the objects that the spec names.
func refuseObjects(s *state.Snapshot) *kit.Statement {
	switch {
	case s.Service.Presence == kit.Present && s.Service.Problem != "":
		return state.Refuse(v1alpha1.ReasonInvalidService, "spec.service: %s.", s.Service.Problem)
	case s.DistributionProblem != "":
		return state.Refuse(v1alpha1.ReasonInvalidSpec, "spec.trafficDistribution: %s.", s.DistributionProblem)
	case s.ProxyPodsProblem != "":
		return state.Refuse(v1alpha1.ReasonInvalidSpec, "spec.proxyPods.%s.", s.ProxyPodsProblem)
	case s.Configuration.Problem != "":
		return state.Refuse(v1alpha1.ReasonConfigurationUnavailable, "spec.configuration: %s.", s.Configuration.Problem)
	}
	return nil
}

// retreat undoes what was begun, after a refusal.
func retreat(d *state.Draft) {
	why, st := *d.Refusal, &d.Status
	underway := st.Stable != nil && (st.Weight != nil || st.Decision != nil || d.Begun())
	if !underway || d.Gone {
		d.State = why
		return
	}
	converge(d)
	qualify(d, why)
}

// stay keeps the release where it is, and says where that is. It removes
// again what another actor gives the canary.
func stay(d *state.Draft) {
	routing.Tidy(d)
	last, now := d.LastRequested(), d.Split.Requested
	if d.Split.Presence == kit.Present && !d.Split.Deleting && !now.SameRequests(last) && !routing.Grows(&d.Snapshot) {
		d.Request(last)
	}
	if d.Status.Step == nil {
		d.Say(d.Refusal.Reason, "The release of revision %s stays where it is meanwhile.", d.Revision)
		return
	}
	d.Say(d.Refusal.Reason, "%s, and stays there meanwhile. %s", gates.Where(&d.Snapshot), evidence.Sentence(&d.Snapshot))
}

// qualify adds the reason of a refusal to what is done in spite of it.
func qualify(d *state.Draft, why kit.Statement) {
	d.State.Ready = false
	if d.State.Progress {
		d.State.Message = kit.Shorten(strings.TrimSpace(d.State.Message + " " + why.Message))
		return
	}
	d.State.Reason, d.State.Stalled = cmp.Or(why.Reason, d.State.Reason), true
	d.State.Message = kit.Shorten(strings.TrimSpace(why.Message + " " + d.State.Message))
}

// finalized says that nothing is left to do when the Rollout has no finalizer any more.
func finalized(d *state.Draft) bool {
	if slices.Contains(d.Rollout.Finalizers, v1alpha1.Finalizer) {
		return false
	}
	d.Say(v1alpha1.ReasonDeleting, "Nothing is left to restore.")
	return true
}
