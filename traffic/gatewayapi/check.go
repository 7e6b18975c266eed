// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// refusal is a problem that refuses a split.
func refusal(format string, args ...any) traffic.Problem {
	return traffic.Problem{
		Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonUnsupported,
		Message: fmt.Sprintf(format, args...),
	}
}

// refusals are one problem for each line of an error.
func refusals(prefix string, err error) []traffic.Problem {
	var problems []traffic.Problem
	for line := range strings.SplitSeq(err.Error(), "\n") {
		problems = append(problems, refusal("%s%s", prefix, line))
	}
	return problems
}

// Check implements traffic.Router. What depends on the routes, Observe finds.
func (r *Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name, traffic.AbilityMatch, traffic.AbilityMirror, traffic.AbilityRoutes)
	if len(split.Name) > validation.LabelValueMaxLength {
		problems = append(problems, refusal("metadata.name: has more than %d characters and can't be a label of routes; choose a shorter name", validation.LabelValueMaxLength))
	}
	problems = append(problems, r.checkServed(split, services[split.Root])...)
	for _, own := range ownRoutes(split, services[split.Root]) {
		if _, err := own.spec(split, r.options.Served.Schema); err != nil {
			problems = append(problems, refusals("", err)...)
		}
	}
	return problems
}

// checkServed refuses kinds of routes that the cluster lacks.
func (r *Router) checkServed(split traffic.Split, root *corev1.Service) []traffic.Problem {
	const install = "install its CustomResourceDefinition and restart the operator, or choose another router"
	var problems []traffic.Problem
	for _, route := range split.Routes {
		switch _, served := r.options.Served.Kinds[route.Kind]; {
		case !slices.Contains(routeKinds, route.Kind):
			problems = append(problems, refusal("%s: %s is no route of the Gateway API; name one of %s", traffic.FieldRoutes, route, strings.Join(routeKinds, ", ")))
		case !served:
			problems = append(problems, refusal("%s: this cluster did not serve %s when the operator started; %s", traffic.FieldRoutes, route.Kind, install))
		}
	}
	for _, own := range ownRoutes(split, root) {
		if _, served := r.options.Served.Kinds[own.kind]; !served {
			problems = append(problems, refusal("spec.service: port %d needs a %s, which this cluster did not serve when the operator started; %s", own.port.Number, own.kind, install))
		}
	}
	return problems
}
