// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// refuse says why a CanaryRelease can't be released as the spec wants.
func refuse(s *state.Snapshot) *kit.Statement {
	name, c := s.Rollout.Spec.WorkloadRef.Name, &s.Delegated
	if what := meaningless(s); what != "" {
		return state.Refuse(v1alpha1.ReasonInvalidSpec, "%s for a CanaryRelease; remove it.", what)
	}
	switch {
	case c.Unserved:
		return state.Refuse(v1alpha1.ReasonInvalidSpec, "spec.workloadRef: this operator serves no CanaryReleases; install it with canaryReleases.enabled.")
	case c.Presence == kit.Present && !consents(s) && !c.Over():
		return state.Refuse(v1alpha1.ReasonConflict, "spec.workloadRef: the CanaryRelease %q does not let this Rollout decide; set its spec.delegation.rollout to %q.", name, s.Rollout.Name)
	case c.Presence == kit.Present && c.Problem != "" && c.Decision == nil:
		return state.Refuse(v1alpha1.ReasonInvalidService, "spec.service: %s.", c.Problem)
	}
	return state.ServiceMissing(s)
}

// meaningless is the field that means nothing for a CanaryRelease, and why; "" for none.
func meaningless(s *state.Snapshot) string {
	spec := &s.Rollout.Spec
	switch {
	case s.RouterName != v1alpha1.RouterNginx:
		return fmt.Sprintf("spec.router: nginx shares the traffic of its Services, so %s has no effect", s.RouterName)
	case spec.Configuration != nil:
		return "spec.configuration: the chart says what its pods read, so it has no effect"
	case spec.TrafficDistribution != nil:
		return "spec.trafficDistribution: the Services of the versions are copies of the chart's, so it has no effect"
	case spec.SessionAffinity != nil:
		return "spec.sessionAffinity: the CanaryRelease shares the requests of its Services one by one, so it has no effect"
	case spec.ProxyPods != nil:
		return "spec.proxyPods: the CanaryRelease has spec.resources for its proxies, so it has no effect"
	case len(spec.RouteRefs) > 0:
		return "spec.routeRefs: the router nginx follows no routes, so it has no effect"
	case spec.RollbackWindow != nil && spec.RollbackWindow.Revisions > 0:
		return "spec.rollbackWindow: `helm rollback` brings an earlier revision back, so it has no effect"
	}
	for i := range spec.Strategy.Steps {
		if field := meaninglessIn(&spec.Strategy.Steps[i]); field != "" {
			return fmt.Sprintf("spec.strategy.steps[%d].%s: has no effect", i, field)
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
