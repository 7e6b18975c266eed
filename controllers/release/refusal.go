// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// A Rollout that can't be served begins nothing and goes on with nothing. What it has
// begun can still be taken back: all that this needs is in the status and in the
// objects that run.
//
//	meanwhile                                       | then
//	------------------------------------------------+---------------------------------------
//	nothing was in progress                         | nothing is touched
//	the analysis fails, or the canary's pods are gone | rolled back
//	a person aborts                                 | rolled back
//	the split is gone, or nobody serves it          | rolled back: nobody governs the traffic
//	somebody gives the canary more traffic          | taken away again
//	the template is stable's again, or another one  | the canary is taken out
//	it was being rolled back, or was handed over    | seen through
//	the Deployment, or the Service, does not exist  | nothing: there is nothing to go back to
//	otherwise                                       | the release stays where it is

// refused says what a person has to mend before Serin can go on.
func (p *pass) refused() bool {
	var err error
	p.settings, err = parseSettings(&p.Rollout.Spec, p.RouterName, p.Freezes, p.Metrics)
	p.applyHoldout()
	if !p.objects(err) && !p.unreleasable() && !p.missing() && !p.nameTaken() {
		return false
	}
	p.byReplicas = p.byReplicas && p.Split.Presence == Absent // a split that is there leads the traffic
	p.state.stalled = true
	return true
}

// objects reports whether what the spec says can't be served.
func (p *pass) objects(err error) bool {
	spec := &p.Rollout.Spec
	switch {
	case err != nil:
		return p.say(v1alpha1.ReasonInvalidSpec, "%s.", err)
	case p.Rival != "":
		return p.say(v1alpha1.ReasonConflict, "The older Rollout %q already claims the %s %q or the Service %q; delete one of the two Rollouts.", p.Rival, cmp.Or(spec.WorkloadRef.Kind, v1alpha1.KindDeployment), spec.WorkloadRef.Name, spec.Service)
	case !p.RouterOffered:
		return p.say(v1alpha1.ReasonRouterUnavailable, "spec.router: this operator does not offer the router %q; leave the field out to use its default.", p.RouterName)
	case p.Unmatchable != "" && slices.ContainsFunc(spec.Strategy.Steps, func(s v1alpha1.Step) bool { return len(s.Matches) > 0 }):
		return p.say(v1alpha1.ReasonRouterUnavailable, "spec.strategy.steps: matches: %s.", p.Unmatchable)
	case p.paired() && p.byReplicas:
		return p.say(v1alpha1.ReasonInvalidSpec, "spec.router: none can't move traffic between two Services; name another router.")
	case p.Service.Presence == Present && p.Service.Problem != "":
		return p.say(v1alpha1.ReasonInvalidService, "spec.service: %s.", p.Service.Problem)
	case p.DistributionProblem != "":
		return p.say(v1alpha1.ReasonInvalidSpec, "spec.trafficDistribution: %s.", p.DistributionProblem)
	case p.Configuration.Problem != "":
		return p.say(v1alpha1.ReasonConfigurationUnavailable, "spec.configuration: %s.", p.Configuration.Problem)
	}
	return false
}

// missing reports whether something that has to exist does not.
func (p *pass) missing() bool {
	spec := &p.Rollout.Spec
	switch {
	case p.without():
		return p.say(v1alpha1.ReasonWorkloadNotFound, "spec.workloadRef: the Deployment %q does not exist in this namespace; create it or correct the name.", spec.WorkloadRef.Name)
	case p.Service.Presence == Absent:
		return p.say(v1alpha1.ReasonServiceNotFound, "spec.service: the Service %q does not exist in this namespace; create it or correct the name.", spec.Service)
	case p.stableServiceGone():
		return p.say(v1alpha1.ReasonServiceNotFound, "spec.services.stable: the Service %q does not exist in this namespace; create it or correct the name.", spec.Services.Stable)
	}
	return false
}

// without reports whether there is no Deployment, and so nothing to go back to.
func (p *pass) without() bool {
	return !p.elsewhere() && (p.Workload.Presence == Absent || p.Workload.Deleting)
}

// stableServiceGone reports whether the Service that has, or would get back, the
// traffic of a pair does not exist.
func (p *pass) stableServiceGone() bool {
	return p.paired() && p.Pair.Missing == p.Rollout.Spec.Services.Stable && !p.pairTraded()
}

func (p *pass) nameTaken() bool {
	if p.paired() {
		return p.splitTaken()
	}
	if p.delegated() {
		return false // it makes nothing itself
	}
	return p.serviceTaken(v1alpha1.RoleStable, &p.StableService) || p.serviceTaken(v1alpha1.RoleCanary, &p.CanaryService) || p.splitTaken()
}

func (p *pass) serviceTaken(role string, b *Backend) bool {
	if b.Presence == Present && !b.Ours {
		return p.say(v1alpha1.ReasonConflict, "The Service %q exists already and is not Serin's; rename or delete it, since a release needs the name.", p.Rollout.Spec.Service+"-"+role)
	}
	return false
}

func (p *pass) splitTaken() bool {
	if p.Split.Presence == Present && !p.Split.Ours {
		return p.say(v1alpha1.ReasonConflict, "The TrafficSplit %q exists already and is not Serin's; rename or delete it, since a release needs the name.", p.Rollout.Name)
	}
	return false
}

// retreat takes back what was begun, after a refusal.
func (p *pass) retreat() {
	why := p.state
	if !p.underway() || p.without() || p.Service.Presence == Absent && !p.delegated() || p.stableServiceGone() {
		return
	}
	p.refusal, p.state = &why, state{}
	p.giveUp()
	p.qualify(why)
}

// underway reports whether there may be something to take back.
func (p *pass) underway() bool {
	return p.status.Stable != nil && (p.status.Weight != nil || p.status.Decision != nil || p.begun())
}

// giveUp is converge of a Rollout that was refused.
func (p *pass) giveUp() {
	if p.paired() {
		p.giveUpPair()
		return
	}
	if p.delegated() {
		p.giveUpDelegated()
		return
	}
	stable := p.stable()
	switch {
	case p.promoted() != nil:
		p.adopt(p.promoted())
	case stable == nil:
		p.stableLost()
	case p.disturbed(), p.usurped(stable):
	case stable.Current:
		p.settle(stable)
	default:
		p.findCanary()
		p.withdraw()
	}
}

// withdraw takes the canary out if there is a reason to.
func (p *pass) withdraw() {
	switch {
	case p.decided(v1alpha1.ActionRollBack) && p.status.Decision.Revision == p.revision:
		p.rolledBack()
	case !p.supersede(), p.aborted(), p.condemned(), p.ungoverned():
	case p.begun():
		p.stay()
	default:
		p.ensureNoCanaryTraffic()
	}
}

// aborted carries out the decision of a person to go back. All others wait until the
// release can go on.
func (p *pass) aborted() bool {
	if c := p.order(); c == nil || c.Action != v1alpha1.ControlAbort {
		return false
	}
	p.obey()
	return p.decided(v1alpha1.ActionRollBack)
}

// ungoverned rolls a release back whose router or split is gone, and its weights with
// it: the Service spreads the requests over all pods by now, and nobody measures them.
func (p *pass) ungoverned() bool {
	unserved := p.Split.Unserved && !p.RouterOffered
	deleted := p.Split.Presence == Absent && !p.byReplicas && !p.elsewhere() && p.canary != nil && !p.canary.gone()
	if !p.begun() || !unserved && !deleted {
		return false
	}
	p.reject(v1alpha1.ReasonRouterUnavailable, "no router serves its TrafficSplit any more, so nobody governs its traffic")
	return true
}

// stay keeps the release where it is, and says where that is. What somebody else gives
// the canary is taken away again.
func (p *pass) stay() {
	last, now := p.lastAsked(), p.Split.Requested
	if p.Split.Presence == Present && !p.Split.Deleting && !now.sameRequests(last) && (now.Weight < 0 || !now.below(last)) {
		p.ensureRoute(last)
	}
	p.say(p.refusal.reason, "The release of revision %s stays where it is meanwhile.", p.revision)
	if p.status.Step != nil {
		p.say(p.refusal.reason, "%s, and stays there meanwhile. %s", p.where(), p.evidenceSentence(p.verdict))
	}
}

// qualify adds the reason of a refusal to what is done in spite of it.
func (p *pass) qualify(why state) {
	p.state.ready = false
	if p.state.progress {
		p.state.message = shorten(strings.TrimSpace(p.state.message + " " + why.message))
		return
	}
	p.state.reason, p.state.stalled = cmp.Or(why.reason, p.state.reason), true
	p.state.message = shorten(strings.TrimSpace(why.message + " " + p.state.message))
}
