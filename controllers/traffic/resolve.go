// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Resolve follows every reference of a split. services are the Services of its
// namespace by name; more than are needed do no harm, and one that is missing
// counts as one that does not exist.
//
// The problems are in the order of the spec. When they refuse the split (see
// Refused), the Split holds nothing but its name, generation and root. Otherwise
// it has every port of the root Service with the destinations that can take it,
// which may be none (see Split.Unroutable).
func Resolve(split *splitv1.TrafficSplit, services map[string]*corev1.Service) (Split, []Problem) {
	out := Split{
		NamespacedName: types.NamespacedName{Namespace: split.Namespace, Name: split.Name},
		Generation:     split.Generation,
	}
	var problems []Problem
	root, err := RootName(split)
	if err != nil {
		problems = append(problems, refuse(splitv1.ReasonInvalid, "%s", err.Error()))
	}
	out.Root = root
	problems = append(problems, checkSpec(split, root)...)
	service := services[root]
	if service != nil {
		problems = append(problems, checkRoot(service)...)
		problems = append(problems, checkLoops(split, service, services)...)
	}
	if Refused(problems) {
		return out, problems
	}
	if service == nil {
		return out, append(problems, unresolved(splitv1.ReasonServiceNotFound,
			"spec.service: Service %q does not exist; create it", root))
	}
	backends, unusable := resolveBackends(split, services)
	problems = append(problems, unusable...)
	var mismatches []Problem
	out.Ports, mismatches = resolvePorts(service, backends)
	return out, append(problems, mismatches...)
}

// RootName is the name of the root Service: spec.service, or its first label
// when it is a domain name of a Service in the split's own namespace. A Service's
// name has no dots, so what follows the first one can only be a domain.
func RootName(split *splitv1.TrafficSplit) (string, error) {
	name, domain, qualified := strings.Cut(split.Spec.Service, ".")
	if name == "" {
		return "", fmt.Errorf("spec.service: %q names no Service; write the name of a Service in the split's namespace",
			split.Spec.Service)
	}
	if !qualified {
		return name, nil
	}
	namespace, rest, more := strings.Cut(domain, ".")
	if namespace != split.Namespace || more && rest != "svc" && !strings.HasPrefix(rest, "svc.") {
		return "", fmt.Errorf("spec.service: %q is not a Service in namespace %q; write the name of one, or %s.%s.svc",
			split.Spec.Service, split.Namespace, name, split.Namespace)
	}
	return name, nil
}

// backend is a backend that exists and has an address, with its weight.
type backend struct {
	service *corev1.Service
	weight  int32
}

func resolveBackends(split *splitv1.TrafficSplit, services map[string]*corev1.Service) ([]backend, []Problem) {
	var backends []backend
	var problems []Problem
	for _, b := range split.Spec.Backends {
		service := services[b.Service]
		switch {
		case service == nil:
			problems = append(problems, unresolved(splitv1.ReasonBackendNotFound,
				"spec.backends: Service %q does not exist yet and gets no traffic; create it", b.Service))
		case service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.ClusterIP == corev1.ClusterIPNone:
			problems = append(problems, unresolved(splitv1.ReasonBackendNotFound,
				"spec.backends: Service %q has no cluster IP (headless or ExternalName) and gets no traffic; name one of type ClusterIP", b.Service))
		case service.Spec.ClusterIP == "":
			problems = append(problems, unresolved(splitv1.ReasonBackendNotFound,
				"spec.backends: Service %q was not given its cluster IP yet and gets no traffic", b.Service))
		default:
			backends = append(backends, backend{service: service, weight: b.Weight})
		}
	}
	return backends, problems
}

func resolvePorts(root *corev1.Service, backends []backend) ([]Port, []Problem) {
	var ports []Port
	var problems []Problem
	for _, p := range root.Spec.Ports {
		port := Port{Name: p.Name, Number: p.Port, Protocol: ProtocolOf(p)}
		port.TargetNumber, port.TargetName = target(p)
		for _, b := range backends {
			if !hasPort(b.service, p) {
				problems = append(problems, unresolved(splitv1.ReasonPortMismatch,
					"spec.backends: Service %q has no port %s of Service %q and gets none of its traffic; give it a port with that number and name",
					b.service.Name, portString(p), root.Name))
				continue
			}
			port.Destinations = append(port.Destinations, Destination{
				Service: b.service.Name, Address: b.service.Spec.ClusterIP, Port: p.Port, Weight: b.weight,
			})
		}
		ports = append(ports, port)
	}
	return ports, problems
}

// hasPort is true when a backend has the root Service's port: the same number and
// protocol and, where both have one, the same name. (Only the single port of a
// Service may go without a name.)
func hasPort(service *corev1.Service, port corev1.ServicePort) bool {
	return slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == port.Port && transport(p) == transport(port) &&
			(p.Name == port.Name || p.Name == "" || port.Name == "")
	})
}

func transport(p corev1.ServicePort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// target is the target port of a Service's port: its number or its name.
func target(p corev1.ServicePort) (int32, string) {
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

func refuse(reason, format string, args ...any) Problem {
	return Problem{Condition: splitv1.ConditionAccepted, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func unresolved(reason, format string, args ...any) Problem {
	return Problem{Condition: splitv1.ConditionResolvedRefs, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
