// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// merged are the operator's resources with the quantities of a split in their place. They fit
// together whatever the operator's are, which the author of a split does not see.
func merged(operators corev1.ResourceRequirements, own *splitv1.ProxyResources) corev1.ResourceRequirements {
	if own == nil {
		return operators
	}
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	maps.Copy(out.Requests, operators.Requests)
	maps.Copy(out.Limits, operators.Limits)
	for name, limit := range own.Limits {
		out.Limits[name] = limit
		if request, found := out.Requests[name]; found && request.Cmp(limit) > 0 {
			out.Requests[name] = limit
		}
	}
	for name, request := range own.Requests {
		out.Requests[name] = request
		if limit, found := out.Limits[name]; found && request.Cmp(limit) > 0 {
			out.Limits[name] = request
		}
	}
	return out
}

// optionsOf are the options for the proxies of one split. With settings of its own that are
// wrong they are the operator's, and the split is refused.
func (r *Router) optionsOf(split *splitv1.TrafficSplit) (Options, []traffic.Problem) {
	routing, _ := splitv1.RoutingOf(split) // resolve.Split refuses what can't be read
	own := routing.ProxyPods
	if own == nil {
		return r.options, nil
	}
	if err := own.Check(); err != nil {
		return r.options, []traffic.Problem{traffic.Refuse(splitv1.ReasonInvalid, "%s.%s", traffic.FieldProxyPods, err)}
	}
	options := r.options
	options.override(*own)
	return options, nil
}
