// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Known are the objects of a split's namespace by name. More than are needed do
// no harm, and one that is missing counts as one that does not exist.
type Known struct {
	// Services of the namespace.
	Services map[string]*corev1.Service
	// Groups of requests of the namespace.
	Groups map[string]*specsv1.HTTPRouteGroup
	// Proxied is true when traffic of the root Service goes through proxies, which can't
	// send it what is not split: it would come back. They send that to a Service of Serin's.
	Proxied bool
}

// ServiceNames are the Services that a split refers to, the root Service first, and the one that
// proxies send the requests to that match none. A reference that can't be read names none.
func ServiceNames(split *splitv1.TrafficSplit) []string {
	var names []string
	if root, err := traffic.RootName(split); err == nil {
		names = append(names, root)
	}
	for _, r := range references(split) {
		names = append(names, r.service)
	}
	if traffic.LeavesUnmatched(split) {
		names = append(names, traffic.UnmatchedName(split.Name))
	}
	if name := traffic.DefaultBackend(split); name != "" && !slices.Contains(names, name) {
		names = append(names, name) // requests past a gateway or mesh go there
	}
	return names
}

// GroupNames are the HTTPRouteGroups that a split refers to.
func GroupNames(split *splitv1.TrafficSplit) []string {
	names := make([]string, 0, len(split.Spec.Matches))
	for _, m := range split.Spec.Matches {
		names = append(names, m.Name)
	}
	return names
}

// fieldBackends is the field of the specification that names Services.
const fieldBackends = "spec.backends"

// reference is a Service that a split sends requests to, and the field that says so.
type reference struct {
	field, service string
}

// references are those of every field that can be read.
func references(split *splitv1.TrafficSplit) []reference {
	refs := make([]reference, 0, len(split.Spec.Backends)+2)
	for _, b := range split.Spec.Backends {
		refs = append(refs, reference{fieldBackends, b.Service})
	}
	if name := defaultBackend(split); name != "" {
		refs = append(refs, reference{traffic.FieldDefaultBackend, name})
	}
	routing, _ := splitv1.RoutingOf(split)
	if mirror, err := mirrorOf(routing); err == nil && mirror != nil {
		refs = append(refs, reference{traffic.FieldMirror, mirror.Service})
	}
	return refs
}

// defaultBackend is the Service that gets the requests that match none, or "" when
// every request is split or none is named.
func defaultBackend(split *splitv1.TrafficSplit) string {
	if len(split.Spec.Matches) == 0 {
		return ""
	}
	return traffic.DefaultBackend(split)
}
