// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	// defaultWeight of a port that sends traffic to the canary and names no weight.
	defaultWeight = 1
	fullWeight    = 100
)

// PortWeight is the canary's share of one port in percent.
type PortWeight struct {
	// Port is the number and transport: "80/TCP".
	Port   string
	Weight int32
}

// String of a port is how weights name it.
func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Number, p.Transport) }

// even gives every port the same weight, in the order of the ports' names.
func even(ports []Port, weight int32) []PortWeight {
	out := make([]PortWeight, 0, len(ports))
	for _, p := range ports {
		out = append(out, PortWeight{Port: p.String(), Weight: weight})
	}
	slices.SortFunc(out, func(a, b PortWeight) int { return strings.Compare(a.Port, b.Port) })
	return out
}

// wanted are the weights that the spec gives the ports of a Service.
func wanted(spec *v1alpha1.CanaryReleaseSpec, s *Service) []PortWeight {
	if len(spec.Services) == 0 {
		return even(s.Ports, defaultWeight)
	}
	i := slices.IndexFunc(spec.Services, func(c v1alpha1.CanaryService) bool { return c.Service == s.Name })
	if i < 0 {
		return even(s.Ports, 0)
	}
	ports := spec.Services[i].Ports
	if len(ports) == 0 {
		return even(s.Ports, defaultWeight)
	}
	out := even(s.Ports, 0)
	for _, p := range ports {
		for _, live := range s.Ports {
			if !Means(p, live) {
				continue
			}
			at := slices.IndexFunc(out, func(w PortWeight) bool { return w.Port == live.String() })
			out[at].Weight = ptr.Deref(p.Config.Weight, defaultWeight)
		}
	}
	return out
}

// Means reports whether an entry of the spec is about a port of a Service. Without a
// protocol it is about both transports of the number.
func Means(p v1alpha1.CanaryPort, live Port) bool {
	switch {
	case p.Port != live.Number:
		return false
	case p.Protocol == "":
		return true
	}
	return (p.Protocol == v1alpha1.CanaryProtocolUDP) == (live.Transport == "UDP")
}

// portProblem says which entry of the spec is about no port of a Service, or about one
// that another entry is about; "" when none is.
func portProblem(ports []v1alpha1.CanaryPort, s *Service) string {
	named := map[Port]bool{}
	for _, p := range ports {
		found := false
		for _, live := range s.Ports {
			if !Means(p, live) {
				continue
			}
			if named[live] {
				return fmt.Sprintf("spec.services: names the port %s of the Service %q twice; remove one", live, s.Name)
			}
			named[live], found = true, true
		}
		if !found {
			return fmt.Sprintf("spec.services: the Service %q has no port %d%s; it has %s", s.Name, p.Port, over(p.Protocol), listed(s.Ports))
		}
	}
	return ""
}

func over(protocol v1alpha1.CanaryProtocol) string {
	switch protocol {
	case "":
		return ""
	case v1alpha1.CanaryProtocolUDP:
		return " over UDP"
	default:
		return " over TCP"
	}
}

func listed(ports []Port) string {
	names := make([]string, 0, len(ports))
	for _, p := range ports {
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// largest is the largest of some weights.
func largest(weights []PortWeight) int32 {
	var most int32
	for _, w := range weights {
		most = max(most, w.Weight)
	}
	return most
}

// grows reports whether a port gets more by the new weights than by the old ones.
func grows(from, to []PortWeight) bool {
	for _, w := range to {
		i := slices.IndexFunc(from, func(f PortWeight) bool { return f.Port == w.Port })
		if w.Weight > 0 && (i < 0 || from[i].Weight < w.Weight) {
			return true
		}
	}
	return false
}

// text of weights in messages: one number where all are equal.
func text(weights []PortWeight) string {
	if len(weights) == 0 {
		return "nothing"
	}
	parts := make([]string, 0, len(weights))
	same := true
	for _, w := range weights {
		same = same && w.Weight == weights[0].Weight
		parts = append(parts, fmt.Sprintf("%s=%d %%", w.Port, w.Weight))
	}
	if same {
		return fmt.Sprintf("%d %%", weights[0].Weight)
	}
	return strings.Join(parts, ", ")
}
