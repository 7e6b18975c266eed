// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// A Rollout that can't be served begins nothing and goes on with nothing. What it has
// begun can still be taken back: all that this needs is in the status and in the
// objects that run.
//
//	meanwhile                                       | then
//	------------------------------------------------+---------------------------------------
//	nothing was in progress                         | nothing is touched
//	the analysis fails, or the canary's pods are gone | rolled back
//	a user aborts                                 | rolled back
//	the split is gone, or nobody serves it          | rolled back: nobody governs the traffic
//	somebody gives the canary more traffic          | taken away again
//	the template is stable's again, or another one  | the canary is taken out
//	it was being rolled back, or was handed over    | seen through
//	the Deployment, or the Service, does not exist  | nothing: there is nothing to go back to
//	otherwise                                       | the release stays where it is

func refusal(reason v1alpha1.Reason, format string, args ...any) *kit.Statement {
	return &kit.Statement{Stalled: true, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// refuse says what a user has to fix before Serin can go on; nil when it can.
func refuse(s *snapshot, err error) *kit.Statement {
	spec := &s.Rollout.Spec
	switch {
	case err != nil:
		return refusal(v1alpha1.ReasonInvalidSpec, "%s.", err)
	case s.Rival != "":
		return refusal(v1alpha1.ReasonConflict, "The older Rollout %q already claims the %s %q or the Service %q; delete one of the two Rollouts.", s.Rival, cmp.Or(spec.WorkloadRef.Kind, v1alpha1.KindDeployment), spec.WorkloadRef.Name, spec.Service)
	case !s.RouterOffered:
		return refusal(v1alpha1.ReasonRouterUnavailable, "spec.router: this operator does not offer the router %q; leave the field out to use its default.", s.RouterName)
	case s.Unmatchable != "" && slices.ContainsFunc(spec.Strategy.Steps, func(s v1alpha1.Step) bool { return len(s.Matches) > 0 }):
		return refusal(v1alpha1.ReasonRouterUnavailable, "spec.strategy.steps: matches: %s.", s.Unmatchable)
	}
	if why := refuseObjects(s); why != nil {
		return why
	}
	return s.unfit
}

// refuseObjects says what is wrong with the objects that the spec names.
func refuseObjects(s *snapshot) *kit.Statement {
	switch {
	case s.Service.Presence == kit.Present && s.Service.Problem != "":
		return refusal(v1alpha1.ReasonInvalidService, "spec.service: %s.", s.Service.Problem)
	case s.DistributionProblem != "":
		return refusal(v1alpha1.ReasonInvalidSpec, "spec.trafficDistribution: %s.", s.DistributionProblem)
	case s.Configuration.Problem != "":
		return refusal(v1alpha1.ReasonConfigurationUnavailable, "spec.configuration: %s.", s.Configuration.Problem)
	}
	return nil
}

// serviceMissing says that the root Service does not exist.
func serviceMissing(s *snapshot) *kit.Statement {
	if s.Service.Presence != kit.Absent {
		return nil
	}
	return refusal(v1alpha1.ReasonServiceNotFound, "spec.service: the Service %q does not exist in this namespace; create it or correct the name.", s.Rollout.Spec.Service)
}

// serviceTaken says that the name of a version's Service is somebody else's.
func serviceTaken(s *snapshot, role string, b *kit.Backend) *kit.Statement {
	if b.Presence != kit.Present || b.Ours {
		return nil
	}
	return refusal(v1alpha1.ReasonConflict, "The Service %q exists already and is not Serin's; rename or delete it, since a release needs the name.", s.Rollout.Spec.Service+"-"+role)
}

// splitTaken says that the name of the split is somebody else's.
func splitTaken(s *snapshot) *kit.Statement {
	if s.Split.Presence != kit.Present || s.Split.Ours {
		return nil
	}
	return refusal(v1alpha1.ReasonConflict, "The TrafficSplit %q exists already and is not Serin's; rename or delete it, since a release needs the name.", s.Rollout.Name)
}

// retreat takes back what was begun, after a refusal.
func retreat(d *draft) {
	why, st := *d.refusal, &d.status
	underway := st.Stable != nil && (st.Weight != nil || st.Decision != nil || d.begun())
	if !underway || d.gone {
		d.State = why
		return
	}
	converge(d)
	qualify(d, why)
}

// stay keeps the release where it is, and says where that is. What somebody else gives
// the canary is taken away again.
func stay(d *draft) {
	tidy(d)
	last, now := d.lastAsked(), d.Split.Requested
	if d.Split.Presence == kit.Present && !d.Split.Deleting && !now.sameRequests(last) && !grows(&d.snapshot) {
		d.request(last)
	}
	if d.status.Step == nil {
		d.Say(d.refusal.Reason, "The release of revision %s stays where it is meanwhile.", d.revision)
		return
	}
	d.Say(d.refusal.Reason, "%s, and stays there meanwhile. %s", where(&d.snapshot), evidenceSentence(&d.snapshot))
}

// qualify adds the reason of a refusal to what is done in spite of it.
func qualify(d *draft, why kit.Statement) {
	d.State.Ready = false
	if d.State.Progress {
		d.State.Message = kit.Shorten(strings.TrimSpace(d.State.Message + " " + why.Message))
		return
	}
	d.State.Reason, d.State.Stalled = cmp.Or(why.Reason, d.State.Reason), true
	d.State.Message = kit.Shorten(strings.TrimSpace(why.Message + " " + d.State.Message))
}
