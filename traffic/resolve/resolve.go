// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Split follows every reference of a split.
//
// The problems are in the order of the spec. When they refuse the split (see
// Refused), the Split holds nothing but its name, generation and root. Otherwise
// it has every port of the root Service with the destinations that can take it,
// which may be none (see Split.Unroutable). It has no ports either while the root Service, or
// the Service for the requests that match none, can't be used yet.
func Split(split *splitv1.TrafficSplit, known Known) (traffic.Split, []traffic.Problem) {
	out := traffic.Split{
		NamespacedName: types.NamespacedName{Namespace: split.Namespace, Name: split.Name},
		Generation:     split.Generation,
	}
	var problems []traffic.Problem
	root, err := traffic.RootName(split)
	if err != nil {
		problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "%s", err.Error()))
	}
	out.Root = root
	problems = append(problems, checkSpec(split, root)...)
	routing, unreadable := readRouting(split)
	problems = append(problems, unreadable...)
	problems = append(problems, checkMirror(routing.mirror, root)...)
	service := known.Services[root]
	if service != nil {
		problems = append(problems, checkRoot(service)...)
		problems = append(problems, checkProtocols(split, service, routing)...)
		problems = append(problems, checkPorts(routing.overrides, service)...)
		problems = append(problems, checkLoops(split, service, known.Services)...)
	}
	matches, unmatchable := resolveMatches(split, known.Groups)
	problems = append(problems, unmatchable...)
	if traffic.Refused(problems) {
		return out, refusals(problems)
	}
	if service == nil {
		return out, append(problems, traffic.Unresolved(splitv1.ReasonServiceNotFound,
			"spec.service: Service %q does not exist; create it", root))
	}
	others, pending := unmatched(split, known)
	if len(pending) > 0 {
		return out, append(problems, pending...)
	}
	out.Limited, out.Matches = len(split.Spec.Matches) > 0, matches
	out.Mirror, out.Sticky, out.Routes = routing.mirror, routing.sticky, routing.routes
	out.PortWeights, out.PortProtocols = len(routing.overrides.weights) > 0, len(routing.overrides.protocols) > 0
	targets, unusable := resolveTargets(split, known.Services)
	problems = append(problems, unusable...)
	if others != nil {
		targets = append(targets, *others)
	}
	var mismatches []traffic.Problem
	out.Ports, mismatches = resolvePorts(service, targets, routing.overrides)
	return out, append(problems, mismatches...)
}

// refusals leaves out what concerns only a part of a split that is refused whole.
func refusals(problems []traffic.Problem) []traffic.Problem {
	return slices.DeleteFunc(problems, func(p traffic.Problem) bool { return p.Condition != splitv1.ConditionAccepted })
}

// target is a Service that exists and has an address, with the field that names it
// and its weight.
type target struct {
	reference
	live   *corev1.Service
	weight int32
}

func resolveTargets(split *splitv1.TrafficSplit, services map[string]*corev1.Service) ([]target, []traffic.Problem) {
	var targets []target
	var problems []traffic.Problem
	told := map[string]bool{}
	for i, ref := range references(split) {
		service := services[ref.service]
		if reason, why := unusable(service); why != "" {
			if !told[ref.service] {
				problems = append(problems, traffic.Unresolved(reason, "%s: Service %q %s", ref.field, ref.service, why))
			}
			told[ref.service] = true
			continue
		}
		t := target{reference: ref, live: service}
		if ref.field == fieldBackends {
			t.weight = split.Spec.Backends[i].Weight // the backends are the first references
		}
		targets = append(targets, t)
	}
	return targets, problems
}

// unusable is why a Service can't be sent requests, with the reason for the condition;
// "" when it can.
func unusable(service *corev1.Service) (reason, why string) {
	switch {
	case service == nil:
		return splitv1.ReasonBackendNotFound, "does not exist yet and gets no traffic; create it"
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return splitv1.ReasonBackendUnsupported, "is of type ExternalName, so it has no cluster IP, and gets no traffic; name one of type ClusterIP"
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return splitv1.ReasonBackendUnsupported, "is headless, so it has no cluster IP, and gets no traffic; name one with a cluster IP"
	case service.Spec.ClusterIP == "":
		return splitv1.ReasonBackendNotFound, "was not given its cluster IP yet and gets no traffic"
	}
	return "", ""
}

func resolvePorts(root *corev1.Service, targets []target, rules overrides) ([]traffic.Port, []traffic.Problem) {
	var ports []traffic.Port
	var problems []traffic.Problem
	for _, p := range root.Spec.Ports {
		port := traffic.Port{Name: p.Name, Number: p.Port, Protocol: rules.protocolOf(p)}
		port.TargetNumber, port.TargetName = targetPort(p)
		told := map[string]bool{}
		for _, t := range targets {
			if hasPort(t.live, p) {
				addTarget(&port, t, rules.weightOf(p, t.service, t.weight))
				continue
			}
			if !told[t.service] {
				problems = append(problems, traffic.Unresolved(splitv1.ReasonPortMismatch,
					"%s: Service %q has no port %s of Service %q and gets none of its traffic; give it a port with that number",
					t.field, t.service, portString(p), root.Name))
			}
			told[t.service] = true
		}
		ports = append(ports, port)
	}
	return ports, problems
}

// addTarget gives the port a target that can take it, with its weight among the destinations.
func addTarget(p *traffic.Port, t target, weight int32) {
	d := traffic.Destination{Service: t.service, Address: t.live.Spec.ClusterIP, Port: p.Number}
	switch t.field {
	case traffic.FieldDefaultBackend:
		p.Default = &d
	case traffic.FieldMirror:
		p.Mirror = &d
	default:
		d.Weight = weight
		p.Destinations = append(p.Destinations, d)
	}
}

// hasPort is true when a backend has the root Service's port: the same number and
// transport. Names need not agree: a Service has each number once for a transport.
func hasPort(service *corev1.Service, port corev1.ServicePort) bool {
	return slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == port.Port && transport(p) == transport(port)
	})
}

func transport(p corev1.ServicePort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// targetPort is the target port of a Service's port: its number or its name.
func targetPort(p corev1.ServicePort) (int32, string) {
	switch {
	case p.TargetPort.Type == intstr.String && p.TargetPort.StrVal != "":
		return 0, p.TargetPort.StrVal
	case p.TargetPort.IntVal != 0:
		return p.TargetPort.IntVal, ""
	default:
		return p.Port, ""
	}
}

func portString(p corev1.ServicePort) string {
	if p.Name == "" {
		return strconv.Itoa(int(p.Port))
	}
	return fmt.Sprintf("%d (%s)", p.Port, p.Name)
}
