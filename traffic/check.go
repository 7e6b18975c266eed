// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Finalizer on a TrafficSplit lets its controller restore the root Service before the split
// is gone. Who makes a split for a router of the operator makes it with the finalizer, which
// saves the controller a write.
const Finalizer = "serin.dev/trafficsplit"

// FieldManager owns the fields that the controller of TrafficSplits and its routers write.
const FieldManager = "serin-trafficsplit"

// LabelProxy on an object says that it belongs to the proxy of the TrafficSplit
// that it names. As a key of a root Service's selector it keeps the pods of the app from being
// endpoints, which have no such label, so that the proxies alone are.
const LabelProxy = "serin.dev/proxy"

// ProxyName is the name of every object of a split's proxy. Its pods' names begin with it
// and a hyphen.
func ProxyName(split string) string { return "serin-proxy-" + split }

// SharedProxyName is the name of every object that the proxies of all splits of a namespace
// share. Its label LabelProxy is empty.
const SharedProxyName = "serin-proxy"

// IndexProxy is the index of the cache that has the pods of a split's proxies by the
// name of the split. The TrafficSplit controller makes it for all routers.
const IndexProxy = "trafficsplit.serin.dev/proxy-of"

// IndexEndpoints is the index of the cache that has EndpointSlices by the name of their Service.
const IndexEndpoints = "trafficsplit.serin.dev/service"

// checkSpec finds what can be said of the spec alone. The schema says most of it
// too, but another implementation's schema may be the one that is installed.
func checkSpec(split *splitv1.TrafficSplit, root string) []Problem {
	var problems []Problem
	var total int64
	seen := map[string]bool{}
	for _, b := range split.Spec.Backends {
		total += int64(b.Weight)
		switch {
		case b.Invalid != "":
			problems = append(problems, refuse(splitv1.ReasonInvalid, "%s", b.Invalid))
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
	return append(problems, checkMatches(split, root)...)
}

// checkMatches finds what can be said of a limited split without its groups.
func checkMatches(split *splitv1.TrafficSplit, root string) []Problem {
	if len(split.Spec.Matches) == 0 {
		return nil
	}
	var problems []Problem
	for _, m := range split.Spec.Matches {
		if m.Kind != "HTTPRouteGroup" || m.APIGroup != nil && *m.APIGroup != specsv1.GroupVersion.Group {
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"spec.matches: %q is of the kind %.63q; name an HTTPRouteGroup of %s", m.Name, m.Kind, specsv1.GroupVersion.Group))
		}
	}
	switch name := defaultBackend(split); {
	case name == "":
	case name == root:
		problems = append(problems, refuse(splitv1.ReasonInvalid,
			"%s: %q is the split's own root Service, which leads back to the proxies; name the Service of a single version", FieldDefaultBackend, name))
	case len(validation.IsDNS1123Label(name)) > 0:
		problems = append(problems, refuse(splitv1.ReasonInvalid, "%s: %.100q is not the name of a Service", FieldDefaultBackend, name))
	}
	return problems
}

// checkMirror refuses a mirror that would come back.
func checkMirror(mirror *Mirror, root string) []Problem {
	if mirror == nil || mirror.Service != root {
		return nil
	}
	return []Problem{refuse(splitv1.ReasonInvalid,
		"%s: %q is the split's own root Service; name the Service of a single version", FieldMirror, root)}
}

// checkProtocols refuses ports whose requests can't be told apart, when that is
// what the split asks for.
func checkProtocols(split *splitv1.TrafficSplit, root *corev1.Service, r routing) []Problem {
	var problems []Problem
	for _, p := range root.Spec.Ports {
		if protocol := r.overrides.protocolOf(p); protocol.HasRequests() || protocol == ProtocolUnsupported {
			continue
		}
		if len(split.Spec.Matches) > 0 {
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"spec.matches: port %s of Service %q is not HTTP, so it has no requests to match; move it to a Service of its own, or give it the appProtocol http",
				portString(p), root.Name))
		}
		if r.mirror != nil {
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"%s: port %s of Service %q is not HTTP, so it has no requests to mirror; move it to a Service of its own, or give it the appProtocol http",
				FieldMirror, portString(p), root.Name))
		}
		if r.sticky != nil {
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"%s: port %s of Service %q is not HTTP, so it has no cookies; move it to a Service of its own, or give it the appProtocol http",
				FieldStickyCookie, portString(p), root.Name))
		}
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

// checkLoops finds backends that are the root Service by another name: those that select
// everything that it does, and so mix the versions.
//
// Where the root Service selects one version alone, the backend of that version selects the
// same, as the primary Service of Flagger does. It is told by the other backends: each exists,
// and none selects among the root Service's pods.
func checkLoops(split *splitv1.TrafficSplit, root *corev1.Service, services map[string]*corev1.Service) []Problem {
	var problems []Problem
	selected := DeclaredSelector(root)
	seen := map[string]bool{}
	for _, ref := range references(split) {
		service := services[ref.service]
		if service == nil || seen[ref.service] || ref.service == root.Name || len(service.Spec.Selector) == 0 {
			continue
		}
		seen[ref.service] = true
		declared := DeclaredSelector(service)
		if !covers(declared, selected) || maps.Equal(declared, selected) && oneVersion(split, selected, services) {
			continue
		}
		problems = append(problems, refuse(splitv1.ReasonInvalid,
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
		declared := DeclaredSelector(service)
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

// DeclaredSelector is a Service's selector without the keys that Serin adds: what
// its owner declares.
func DeclaredSelector(service *corev1.Service) map[string]string {
	pinned := PinOf(service).Keys
	selector := make(map[string]string, len(service.Spec.Selector))
	for k, v := range service.Spec.Selector {
		if _, pin := pinned[k]; k != LabelProxy && !pin {
			selector[k] = v
		}
	}
	return selector
}
