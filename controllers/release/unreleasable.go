// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// unreleasable says why a CanaryRelease can't be released as the spec wants, and reports
// whether that is so.
func (p *pass) unreleasable() bool {
	if !p.delegated() {
		return false
	}
	name, c := p.Rollout.Spec.WorkloadRef.Name, &p.Delegated
	if what := p.meaningless(); what != "" {
		return p.say(v1alpha1.ReasonInvalidSpec, "%s for a CanaryRelease; remove it.", what)
	}
	switch {
	case c.Unserved:
		return p.say(v1alpha1.ReasonInvalidSpec, "spec.workloadRef: this operator serves no CanaryReleases; install it with canaryReleases.enabled.")
	case c.Presence == Present && !p.consents() && !c.over():
		return p.say(v1alpha1.ReasonConflict, "spec.workloadRef: the CanaryRelease %q does not let this Rollout decide; set its spec.delegation.rollout to %q.", name, p.Rollout.Name)
	case c.Presence == Present && c.Problem != "" && c.Decision == nil:
		return p.say(v1alpha1.ReasonInvalidService, "spec.service: %s.", c.Problem)
	}
	return false
}

// over reports whether it has ended, so that nobody decides about it any more.
func (c *Delegated) over() bool { return c.Decision != nil && c.Decision.EndedAt != nil }

// meaningless is the field that means nothing for a CanaryRelease, and why; "" for none.
func (p *pass) meaningless() string {
	spec := &p.Rollout.Spec
	switch {
	case p.RouterName != v1alpha1.RouterNginx:
		return fmt.Sprintf("spec.router: nginx shares the traffic of its Services, so that %s means nothing", p.RouterName)
	case spec.Configuration != nil:
		return "spec.configuration: the chart says what its pods read, so that it means nothing"
	case spec.TrafficDistribution != nil:
		return "spec.trafficDistribution: the Services of the versions are copies of the chart's, so that it means nothing"
	case len(spec.RouteRefs) > 0:
		return "spec.routeRefs: the router nginx follows no routes, so that it means nothing"
	case spec.RollbackWindow != nil && spec.RollbackWindow.Revisions > 0:
		return "spec.rollbackWindow: `helm rollback` brings an earlier revision back, so that it means nothing"
	}
	for i := range spec.Strategy.Steps {
		if field := meaninglessIn(&spec.Strategy.Steps[i]); field != "" {
			return fmt.Sprintf("spec.strategy.steps[%d].%s: means nothing", i, field)
		}
	}
	return ""
}

func meaninglessIn(s *v1alpha1.Step) string {
	switch {
	case len(s.Matches) > 0:
		return "matches"
	case s.Mirror != nil && *s.Mirror > 0:
		return "mirror"
	case s.CanaryReplicas != nil:
		return "canaryReplicas"
	}
	return ""
}

// reportDelegated notes how many pods of the canary can answer. Those of stable are the
// Deployments', which nobody asks about here.
func (p *pass) reportDelegated(v *v1alpha1.VersionStatus) {
	v.Replicas, v.Ready = 0, 0
	if v == p.status.Canary {
		v.Replicas, v.Ready = p.Delegated.Replicas, p.Delegated.Ready
	}
}
