// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Placed is a Service of a split with where its endpoints are.
type Placed struct {
	// Service as read.
	Service *corev1.Service
	// Weight of a backend; 0 for the root Service.
	Weight int32
	// Root is true for the root Service.
	Root bool
	// Endpoints are the ready ones. Others have no hints, and kube-proxy sends them
	// nothing.
	Endpoints []Endpoint
}

// Endpoint is where an endpoint is, and whom its hints are for.
type Endpoint struct {
	// Name of the pod, or the address when it is no pod.
	Name string
	// Zone is "" when it is not known.
	Zone string
	// ZoneHint and NodeHint are whether there is such a hint.
	ZoneHint, NodeHint bool
}

// Distribution is what a status says about the traffic distribution.
type Distribution struct {
	Accepted, Programmed Condition
}

// Distribute judges the traffic distribution of a split's Services. It is nil when
// none of them has one.
//
// Programmed asks for what kube-proxy asks for (topologyModeFromHints of
// k8s.io/kubernetes/pkg/proxy): it follows hints only if all ready endpoints of the
// Service have them, and in a zone only if one of them is for that zone.
func Distribute(services []Placed) *Distribution {
	if !slices.ContainsFunc(services, func(p Placed) bool { return p.Service.Spec.TrafficDistribution != nil }) {
		return nil
	}
	d := &Distribution{Accepted: distributionAccepted(services)}
	if d.Accepted.Status == metav1.ConditionTrue {
		d.Programmed = distributionProgrammed(services)
		return d
	}
	d.Programmed = d.Accepted
	return d
}

func distributionAccepted(services []Placed) Condition {
	for _, p := range services {
		value := p.Service.Spec.TrafficDistribution
		if value == nil {
			continue
		}
		if annotation := topologyMode(p.Service); annotation != "" {
			return not(splitv1.ReasonOverridden,
				"Service %q has the annotation %s: Auto, which wins over its spec.trafficDistribution; remove the annotation", p.Service.Name, annotation)
		}
		switch *value {
		case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode:
		default:
			return not(splitv1.ReasonUnknownValue,
				"Kubernetes does not act upon the spec.trafficDistribution %q of Service %q; write PreferSameZone or PreferSameNode, unless another implementation acts upon it",
				*value, p.Service.Name)
		}
	}
	return Condition{metav1.ConditionTrue, splitv1.ReasonAccepted, "Kubernetes acts upon the spec.trafficDistribution of every Service that has one"}
}

// topologyMode is the annotation by which a Service asks for hints by a heuristic,
// which then wins over the field; "" when it has none. The older annotation goes
// before the newer one, as in hintsEnabled of k8s.io/endpointslice.
func topologyMode(s *corev1.Service) string {
	for _, name := range []string{corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode} {
		if value, found := s.Annotations[name]; found {
			if value == "Auto" || value == "auto" {
				return name
			}
			return ""
		}
	}
	return ""
}

func distributionProgrammed(services []Placed) Condition {
	for _, p := range services {
		if c, found := unhinted(p); found {
			return c
		}
	}
	if c, found := zonesDiffer(services); found {
		return c
	}
	return Condition{metav1.ConditionTrue, splitv1.ReasonProgrammed, "every ready endpoint has hints, and the backends have endpoints in the same zones"}
}

// unhinted says why kube-proxy prefers none of a Service's endpoints. A backend that
// gets no requests may be without endpoints.
func unhinted(p Placed) (Condition, bool) {
	if len(p.Endpoints) == 0 {
		return not(splitv1.ReasonNoEndpoints, "Service %q has no ready endpoint", p.Service.Name), p.Root || p.Weight > 0
	}
	value := p.Service.Spec.TrafficDistribution
	if value == nil {
		return not(splitv1.ReasonHintsMissing,
			"Service %q has no spec.trafficDistribution, so kube-proxy prefers none of its endpoints; set it as on the other Services of the split", p.Service.Name), true
	}
	byNode := *value == corev1.ServiceTrafficDistributionPreferSameNode
	i := slices.IndexFunc(p.Endpoints, func(e Endpoint) bool { return byNode && !e.NodeHint || !byNode && !e.ZoneHint })
	if i < 0 {
		return Condition{}, false
	}
	why := "has none yet"
	if e := p.Endpoints[i]; !byNode && e.Zone == "" {
		why = "is in no zone that is known; set the label " + corev1.LabelTopologyZone + " on its node"
	}
	return not(splitv1.ReasonHintsMissing,
		"the hints for all endpoints of Service %q are ignored, since its endpoint %q %s", p.Service.Name, p.Endpoints[i].Name, why), true
}

// zonesDiffer finds a backend with requests that lacks a zone where another one has
// endpoints. There kube-proxy sends its requests to other zones, which takes longer
// and loads its other endpoints more than their share.
func zonesDiffer(services []Placed) (Condition, bool) {
	zones := map[string][]string{}
	var all []string
	for _, p := range services {
		if p.Root || p.Weight == 0 {
			continue
		}
		for _, e := range p.Endpoints {
			if e.Zone != "" {
				zones[p.Service.Name] = append(zones[p.Service.Name], e.Zone)
				all = append(all, e.Zone)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, p := range services {
		has := zones[p.Service.Name]
		missing := slices.DeleteFunc(slices.Clone(all), func(zone string) bool { return slices.Contains(has, zone) })
		if p.Root || len(has) == 0 || len(missing) == 0 {
			continue
		}
		return not(splitv1.ReasonZonesDiffer,
			"Service %q has no ready endpoint in %s, where another backend has some, so its requests leave the zone there and it can't be compared fairly; "+
				"give it at least %d pods, spread over the zones (for a Rollout: canaryReplicas of the step, and topologySpreadConstraints with matchLabelKeys [pod-template-hash] in the template)",
			p.Service.Name, strings.Join(missing, ", "), len(all)), true
	}
	return Condition{}, false
}

// not is a condition that is False.
func not(reason, format string, args ...any) Condition {
	return Condition{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}
