// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// checkSpec finds what can be said of the spec alone. The schema says most of it
// too, but another implementation's schema may be the one that is installed.
func checkSpec(split *splitv1.TrafficSplit, root string) []traffic.Problem {
	var problems []traffic.Problem
	var total int64
	seen := map[string]bool{}
	for _, b := range split.Spec.Backends {
		total += int64(b.Weight)
		switch {
		case b.Invalid != "":
			problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "%s", b.Invalid))
		case b.Weight < 0:
			problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid,
				"spec.backends: the weight %d of %q is negative; write 0 or more", b.Weight, b.Service))
		case b.Service == root:
			problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid,
				"spec.backends: %q is the split's own root Service; name the Services of the individual versions", b.Service))
		case seen[b.Service]:
			problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid,
				"spec.backends: %q is named twice; write one backend with the sum of the weights", b.Service))
		}
		seen[b.Service] = true
	}
	if total <= 0 {
		problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid,
			"spec.backends: at least one weight must be above 0, or no request could be answered"))
	}
	return append(problems, checkMatches(split, root)...)
}

// checkMatches finds what can be said of a limited split without its groups.
func checkMatches(split *splitv1.TrafficSplit, root string) []traffic.Problem {
	if len(split.Spec.Matches) == 0 {
		return nil
	}
	var problems []traffic.Problem
	for _, m := range split.Spec.Matches {
		if m.Kind != "HTTPRouteGroup" || m.APIGroup != nil && *m.APIGroup != specsv1.GroupVersion.Group {
			problems = append(problems, traffic.Unsupported(
				"spec.matches: %q is of the kind %.63q; name an HTTPRouteGroup of %s", m.Name, m.Kind, specsv1.GroupVersion.Group))
		}
	}
	switch name := defaultBackend(split); {
	case name == "":
	case name == root:
		problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid,
			"%s: %q is the split's own root Service, which leads back to the proxies; name the Service of a single version", traffic.FieldDefaultBackend, name))
	case len(validation.IsDNS1123Label(name)) > 0:
		problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "%s: %.100q is not the name of a Service", traffic.FieldDefaultBackend, name))
	}
	return problems
}

// checkMirror refuses a mirror that would come back.
func checkMirror(mirror *traffic.Mirror, root string) []traffic.Problem {
	if mirror == nil || mirror.Service != root {
		return nil
	}
	return []traffic.Problem{traffic.Refuse(splitv1.ReasonInvalid,
		"%s: %q is the split's own root Service; name the Service of a single version", traffic.FieldMirror, root)}
}

// checkProtocols refuses ports whose requests can't be distinguished, when that is
// what the split asks for.
func checkProtocols(split *splitv1.TrafficSplit, root *corev1.Service, r routing) []traffic.Problem {
	var problems []traffic.Problem
	for _, p := range root.Spec.Ports {
		if protocol := r.overrides.protocolOf(p); protocol.HasRequests() || protocol == traffic.ProtocolUnsupported {
			continue
		}
		if len(split.Spec.Matches) > 0 {
			problems = append(problems, traffic.Unsupported(
				"spec.matches: port %s of Service %q is not HTTP, so it has no requests to match; move it to a Service of its own, or give it the appProtocol http",
				portString(p), root.Name))
		}
		if r.mirror != nil {
			problems = append(problems, traffic.Unsupported(
				"%s: port %s of Service %q is not HTTP, so it has no requests to mirror; move it to a Service of its own, or give it the appProtocol http",
				traffic.FieldMirror, portString(p), root.Name))
		}
		if r.sticky != nil {
			problems = append(problems, traffic.Unsupported(
				"%s: port %s of Service %q is not HTTP, so it has no cookies; move it to a Service of its own, or give it the appProtocol http",
				traffic.FieldStickyCookie, portString(p), root.Name))
		}
	}
	return problems
}

// checkRoot finds what makes a Service impossible to split.
func checkRoot(root *corev1.Service) []traffic.Problem {
	var problems []traffic.Problem
	switch {
	case root.Spec.Type == corev1.ServiceTypeExternalName:
		problems = append(problems, traffic.Unsupported(
			"spec.service: Service %q is of type ExternalName, so its clients never pass the cluster; name one of type ClusterIP", root.Name))
	case root.Spec.ClusterIP == corev1.ClusterIPNone:
		problems = append(problems, traffic.Unsupported(
			"spec.service: Service %q is headless, so its clients choose among the pods themselves; name one with a cluster IP", root.Name))
	case len(traffic.DeclaredSelector(root)) == 0:
		problems = append(problems, traffic.Unsupported(
			"spec.service: Service %q has no selector; give it the labels of the pods of all versions", root.Name))
	case len(root.Spec.Ports) == 0:
		problems = append(problems, traffic.Unsupported("spec.service: Service %q has no ports; give it one", root.Name))
	}
	for _, p := range root.Spec.Ports {
		if ProtocolOf(p) == traffic.ProtocolUnsupported {
			problems = append(problems, traffic.Unsupported(
				"spec.service: port %s of Service %q is %s, which can't be split; move it to a Service of its own", portString(p), root.Name, p.Protocol))
		}
	}
	return problems
}

// checkLoops finds backends that are the root Service by another name: those that select
// everything that it does, and so mix the versions.
//
// Where the root Service selects one version alone, the backend of that version selects the
// same, as the primary Service of Flagger does. It is told by the other backends: each exists,
// and none selects among the root Service's pods.
func checkLoops(split *splitv1.TrafficSplit, root *corev1.Service, services map[string]*corev1.Service) []traffic.Problem {
	var problems []traffic.Problem
	selected := traffic.DeclaredSelector(root)
	seen := map[string]bool{}
	for _, ref := range references(split) {
		service := services[ref.service]
		if service == nil || seen[ref.service] || ref.service == root.Name || len(service.Spec.Selector) == 0 {
			continue
		}
		seen[ref.service] = true
		declared := traffic.DeclaredSelector(service)
		if !covers(declared, selected) || maps.Equal(declared, selected) && oneVersion(split, selected, services) {
			continue
		}
		problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid,
			"%s: Service %q selects all pods of Service %q; give its selector the label that tells its version apart",
			ref.field, ref.service, root.Name))
	}
	return problems
}

// covers is true when a selector selects every pod that another one does.
func covers(selector, other map[string]string) bool {
	return labels.SelectorFromSet(selector).Matches(labels.Set(other))
}

// oneVersion is true when the pods of a root Service are those of one version: of several
// Services that the split names, no other selects among them.
func oneVersion(split *splitv1.TrafficSplit, selected map[string]string, services map[string]*corev1.Service) bool {
	others := 0
	for _, ref := range references(split) {
		service := services[ref.service]
		if service == nil {
			return false // it may select among them
		}
		declared := traffic.DeclaredSelector(service)
		if maps.Equal(declared, selected) {
			continue
		}
		if covers(selected, declared) {
			return false
		}
		others++
	}
	return others > 0
}
