// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/traffic"
)

// accepted says whether the split can be served at all.
func accepted(o Observation) Condition {
	switch {
	case o.Claim == ClaimUnknownRouter:
		return Condition{metav1.ConditionFalse, splitv1.ReasonUnknownRouter, fmt.Sprintf(
			"%s: %q is not a router of this operator; name another one, or remove it for the default",
			traffic.FieldRouter, o.Router)}
	case o.Rival != "":
		return Condition{metav1.ConditionFalse, splitv1.ReasonConflict, fmt.Sprintf(
			"spec.service: TrafficSplit %q already has this root Service; delete one of the two", o.Rival)}
	}
	if c, found := first(o.Problems, splitv1.ConditionAccepted); found {
		return c
	}
	return Condition{metav1.ConditionTrue, splitv1.ReasonAccepted, "served by the router " + o.Router}
}

// resolvedRefs says whether every reference exists and fits.
func resolvedRefs(o Observation) Condition {
	if c, found := first(o.Problems, splitv1.ConditionResolvedRefs); found {
		return c
	}
	if traffic.Refused(o.Problems) || o.Claim != ClaimOurs || o.Rival != "" {
		return Condition{metav1.ConditionUnknown, splitv1.ReasonPending, "not checked, since the split was refused"}
	}
	if o.Resolved.Limited {
		return Condition{metav1.ConditionTrue, splitv1.ReasonResolved, "every Service and HTTPRouteGroup exists, and the Services have the ports of the root Service"}
	}
	return Condition{metav1.ConditionTrue, splitv1.ReasonResolved, "every Service exists and has the ports of the root Service"}
}

// first makes a condition of the problems of one type: the reason of the first
// and the messages of all.
func first(problems []traffic.Problem, condition string) (Condition, bool) {
	var of []traffic.Problem
	for _, p := range problems {
		if p.Condition == condition {
			of = append(of, p)
		}
	}
	if len(of) == 0 {
		return Condition{}, false
	}
	return Condition{metav1.ConditionFalse, of[0].Reason, traffic.Summary(of)}, true
}

// programmed says whether the generation is live for every request.
func programmed(o Observation) Condition {
	if waits := obstacles(o); len(waits) > 0 {
		return pending("%s", strings.Join(waits, "; "))
	}
	if c, waiting := waitingForProxies(o); waiting {
		return c
	}
	switch {
	case !o.Endpoints.Known:
		return Condition{metav1.ConditionUnknown, splitv1.ReasonWaitingForService, "the endpoints of the root Service could not be read"}
	case !o.proxied(), o.through() == 0, o.around() > 0:
		return Condition{
			metav1.ConditionFalse, splitv1.ReasonWaitingForService,
			fmt.Sprintf("Service %q is being cut over to the proxies", o.Resolved.Root),
		}
	}
	if o.Resolved.Limited {
		others := "the default backend gets all others"
		if traffic.LeavesUnmatched(o.Split) {
			others = "the root Service's own pods get all others"
		}
		return Condition{metav1.ConditionTrue, splitv1.ReasonProgrammed, "the weights are live for every request that matches, and " + others}
	}
	return Condition{metav1.ConditionTrue, splitv1.ReasonProgrammed, "the weights are live for every request"}
}

// obstacles are what prevents live weights, other than time.
func obstacles(o Observation) []string {
	var waits []string
	switch {
	case o.Root.Presence == kit.Absent:
		return []string{fmt.Sprintf("the root Service %q does not exist", o.Resolved.Root)}
	case o.Root.Presence != kit.Present:
		return []string{"the root Service could not be read"}
	}
	if holder := traffic.Holder(o.Root.Service); holder != "" && holder != o.Split.Name {
		waits = append(waits, fmt.Sprintf("TrafficSplit %q still splits the traffic of Service %q", holder, o.Root.Service.Name))
	}
	for _, p := range o.unroutable() {
		if p.TotalWeight() > 0 {
			waits = append(waits, fmt.Sprintf("port %d has no default backend that could take the requests that match nothing", p.Number))
			continue
		}
		waits = append(waits, fmt.Sprintf("port %d has no backend with a weight above 0 that could take its traffic", p.Number))
	}
	for _, object := range o.DataPlane.Objects {
		if wait := inTheWay(object); wait != "" {
			waits = append(waits, wait)
		}
	}
	return waits
}

// inTheWay is why an object can't become what is wanted before a user or another
// controller acts, or "".
func inTheWay(object traffic.Object) string {
	var why string
	switch {
	case object.Unwanted:
		return ""
	case object.Patched && object.Condition == traffic.ObjectAbsent:
		why = "does not exist; create it, or correct " + traffic.FieldRoutes
	case object.Patched && object.Condition == traffic.ObjectForeign:
		why = "is changed by another TrafficSplit; let only one of them name it"
	case object.Condition == traffic.ObjectForeign:
		why = "exists and is not Serin's; delete or rename it"
	case object.Condition == traffic.ObjectTerminating:
		why = "is being deleted"
	default:
		return ""
	}
	return fmt.Sprintf("%s %q %s", object.Kind, object.Name, why)
}

func pending(format string, args ...any) Condition {
	return Condition{metav1.ConditionFalse, splitv1.ReasonPending, fmt.Sprintf(format, args...)}
}
