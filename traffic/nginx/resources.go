// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// fieldResources is the annotation as messages name it.
const fieldResources = "metadata.annotations[" + splitv1.AnnotationProxyResources + "]"

// maxResourcesBytes bounds the annotation: two short lists of quantities.
const maxResourcesBytes = 2048

// proxyResources are what a proxy's container may have, by the annotation.
type proxyResources struct {
	Requests corev1.ResourceList `json:"requests,omitempty"`
	Limits   corev1.ResourceList `json:"limits,omitempty"`
}

// resourcesOf are the resources of a split's proxies: those of the annotation, else those
// of the operator. An error says what is wrong with the annotation.
func resourcesOf(split *splitv1.TrafficSplit, operators corev1.ResourceRequirements) (corev1.ResourceRequirements, error) {
	text, found := split.Annotations[splitv1.AnnotationProxyResources]
	if !found {
		return operators, nil
	}
	if len(text) > maxResourcesBytes {
		return operators, fmt.Errorf("%s: has more than %d bytes; name only requests and limits", fieldResources, maxResourcesBytes)
	}
	var own proxyResources
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&own); err != nil || decoder.More() {
		return operators, fmt.Errorf(`%s: can't be read; write {"requests": {"cpu": "100m"}, "limits": {"memory": "512Mi"}}`, fieldResources)
	}
	for _, list := range []corev1.ResourceList{own.Requests, own.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			switch quantity := list[name]; {
			case quantity.Sign() < 0:
				return operators, fmt.Errorf("%s: %s is below 0; correct it", fieldResources, name)
			case !slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name):
				return operators, fmt.Errorf("%s: %.40q is no resource of a proxy; name cpu, memory or ephemeral-storage", fieldResources, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own.Limits)) {
		if request, found := own.Requests[name]; found && request.Cmp(own.Limits[name]) > 0 {
			return operators, fmt.Errorf("%s: requests more %s than its limit; correct one", fieldResources, name)
		}
	}
	return corev1.ResourceRequirements{Requests: own.Requests, Limits: own.Limits}, nil
}

// optionsOf are the options for the proxies of one split. With an annotation that can't be
// read they are the operator's, and the split is refused.
func (r *Router) optionsOf(split *splitv1.TrafficSplit) (Options, []traffic.Problem) {
	options := r.options
	resources, err := resourcesOf(split, options.Resources)
	if _, requested := resources.Requests[corev1.ResourceCPU]; err == nil && options.Autoscaling != nil && !requested {
		err = fmt.Errorf("%s: requests no cpu, of which the autoscaler's utilization is a part; add it", fieldResources)
	}
	if err != nil {
		return options, []traffic.Problem{{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonInvalid, Message: err.Error()}}
	}
	options.Resources = resources
	return options, nil
}
