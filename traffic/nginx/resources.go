// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// resourcesOf are the resources of a split's proxies: those of its routing, else those of
// the operator. An error says what is wrong with them.
func resourcesOf(split *splitv1.TrafficSplit, operators corev1.ResourceRequirements) (corev1.ResourceRequirements, error) {
	routing, _ := splitv1.RoutingOf(split) // resolve.Split refuses what can't be read
	own := routing.ProxyResources
	if own == nil {
		return operators, nil
	}
	if len(own.Claims) > 0 {
		return operators, fmt.Errorf("%s.claims: a proxy takes none; name only requests and limits", traffic.FieldProxyResources)
	}
	for _, list := range []corev1.ResourceList{own.Requests, own.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			switch quantity := list[name]; {
			case quantity.Sign() < 0:
				return operators, fmt.Errorf("%s: %s is below 0; correct it", traffic.FieldProxyResources, name)
			case !slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name):
				return operators, fmt.Errorf("%s: %.40q is not a resource of a proxy; name cpu, memory or ephemeral-storage", traffic.FieldProxyResources, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own.Limits)) {
		if request, found := own.Requests[name]; found && request.Cmp(own.Limits[name]) > 0 {
			return operators, fmt.Errorf("%s: requests more %s than its limit; correct one", traffic.FieldProxyResources, name)
		}
	}
	return *own, nil
}

// optionsOf are the options for the proxies of one split. With settings of its own that are
// wrong they are the operator's, and the split is refused.
func (r *Router) optionsOf(split *splitv1.TrafficSplit) (Options, []traffic.Problem) {
	options := r.options
	routing, _ := splitv1.RoutingOf(split) // resolve.Split refuses what can't be read
	if routing.ProxyPods != nil {
		if err := CheckPods(*routing.ProxyPods); err != nil {
			return r.options, invalid(fmt.Errorf("%s.%w", traffic.FieldProxyPods, err))
		}
		options.override(*routing.ProxyPods)
	}
	resources, err := resourcesOf(split, options.Resources)
	if _, requested := resources.Requests[corev1.ResourceCPU]; err == nil && options.Autoscaling != nil && !options.Autoscaling.IfPossible && !requested {
		err = fmt.Errorf("%s: requests no cpu, of which the autoscaler's utilization is a part; add it", traffic.FieldProxyResources)
	}
	if err != nil {
		return r.options, invalid(err)
	}
	options.Resources = resources
	return options, nil
}

func invalid(err error) []traffic.Problem {
	return []traffic.Problem{traffic.Refuse(splitv1.ReasonInvalid, "%s", err)}
}
