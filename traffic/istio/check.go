// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Check finds what Istio can't express, whatever the VirtualServices hold. What can't be
// expressed in one of them, Observe says of that object.
func (r *Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name, traffic.AbilityMatch, traffic.AbilityMirror, traffic.AbilityRoutes)
	add := func(format string, args ...any) {
		problems = append(problems, traffic.Problem{
			Condition: splitv1.ConditionAccepted,
			Reason:    splitv1.ReasonUnsupported, Message: fmt.Sprintf(format, args...),
		})
	}
	if !r.kinds.served() {
		add("%s: this cluster did not serve VirtualServices and DestinationRules of %s when the operator started; "+
			"install Istio and restart the operator, or choose another router", traffic.FieldRouter, group)
		return problems
	}
	if len(split.Name) > validation.LabelValueMaxLength {
		add("metadata.name: has more than %d characters and can't be a label of routes; choose a shorter name", validation.LabelValueMaxLength)
	}
	for _, route := range split.Routes {
		if route.Kind != kindVirtualService {
			add("%s: %s is no route of Istio; name a VirtualService, or choose the router gatewayAPI", traffic.FieldRoutes, route)
		}
	}
	for _, m := range split.Matches {
		if _, _, err := intersect(block{}, m); err != nil {
			add("spec.matches: %s: %s", m, err)
		}
	}
	if root := services[split.Root]; root != nil && len(split.Routes) == 0 && len(problems) == 0 && len(split.Ports) > 0 {
		if _, err := MakeMeshSpec(split, root); err != nil {
			add("spec.service: %s", err)
		}
	}
	return problems
}
