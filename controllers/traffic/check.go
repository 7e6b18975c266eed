// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// LabelProxy on an object says that it belongs to the proxy of the TrafficSplit
// that it names. As a key of a root Service's selector it puts that proxy in the
// path of the Service.
const LabelProxy = "serin.dev/proxy"

// checkSpec finds what can be said of the spec alone. The schema says most of it
// too, but another implementation's schema may be the one that is installed.
func checkSpec(split *splitv1.TrafficSplit, root string) []Problem {
	var problems []Problem
	if len(split.Spec.Matches) > 0 {
		problems = append(problems, refuse(splitv1.ReasonUnsupported,
			"spec.matches: limiting a split to requests that match is not supported; remove spec.matches to split every request"))
	}
	var total int64
	seen := map[string]bool{}
	for _, b := range split.Spec.Backends {
		total += int64(b.Weight)
		switch {
		case b.Weight < 0:
			problems = append(problems, refuse(splitv1.ReasonInvalid,
				"spec.backends: the weight %d of %q is negative; write 0 or more", b.Weight, b.Service))
		case b.Service == root:
			problems = append(problems, refuse(splitv1.ReasonInvalid,
				"spec.backends: %q is the split's own root Service; name the Services of the single versions", b.Service))
		case seen[b.Service]:
			problems = append(problems, refuse(splitv1.ReasonInvalid,
				"spec.backends: %q is named twice; write one backend with the sum of the weights", b.Service))
		}
		seen[b.Service] = true
	}
	if total <= 0 {
		problems = append(problems, refuse(splitv1.ReasonInvalid,
			"spec.backends: at least one weight must be above 0, or no request could be answered"))
	}
	return problems
}

// checkRoot finds what makes a Service impossible to split.
func checkRoot(root *corev1.Service) []Problem {
	var problems []Problem
	switch {
	case root.Spec.Type == corev1.ServiceTypeExternalName:
		problems = append(problems, refuse(splitv1.ReasonUnsupported,
			"spec.service: Service %q is of type ExternalName, so its clients never pass the cluster; name one of type ClusterIP", root.Name))
	case root.Spec.ClusterIP == corev1.ClusterIPNone:
		problems = append(problems, refuse(splitv1.ReasonUnsupported,
			"spec.service: Service %q is headless, so its clients choose among the pods themselves; name one with a cluster IP", root.Name))
	case len(DeclaredSelector(root)) == 0:
		problems = append(problems, refuse(splitv1.ReasonUnsupported,
			"spec.service: Service %q has no selector; give it the labels of the pods of all versions", root.Name))
	case len(root.Spec.Ports) == 0:
		problems = append(problems, refuse(splitv1.ReasonUnsupported, "spec.service: Service %q has no ports; give it one", root.Name))
	}
	for _, p := range root.Spec.Ports {
		if ProtocolOf(p) == ProtocolUnsupported {
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"spec.service: port %s of Service %q is %s, which can't be split; move it to a Service of its own", portString(p), root.Name, p.Protocol))
		}
	}
	return problems
}

// checkLoops finds backends that select everything that the root Service does.
// Such a backend is the root Service by another name: it mixes the versions, and
// with a proxy behind the root Service it would send the traffic round in a circle.
func checkLoops(split *splitv1.TrafficSplit, root *corev1.Service, services map[string]*corev1.Service) []Problem {
	var problems []Problem
	selected := labels.Set(DeclaredSelector(root))
	for _, b := range split.Spec.Backends {
		service := services[b.Service]
		if service == nil || b.Service == root.Name || len(service.Spec.Selector) == 0 {
			continue
		}
		if labels.SelectorFromSet(DeclaredSelector(service)).Matches(selected) {
			problems = append(problems, refuse(splitv1.ReasonInvalid,
				"spec.backends: Service %q selects all pods of Service %q; give its selector the label that tells its version apart",
				b.Service, root.Name))
		}
	}
	return problems
}

// DeclaredSelector is a Service's selector without the key that Serin adds: what
// its owner declares.
func DeclaredSelector(service *corev1.Service) map[string]string {
	selector := make(map[string]string, len(service.Spec.Selector))
	for k, v := range service.Spec.Selector {
		if k != LabelProxy {
			selector[k] = v
		}
	}
	return selector
}
