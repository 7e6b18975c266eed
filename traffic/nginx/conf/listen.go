// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic"
)

const (
	// AgentPort is where the agent of a proxy pod serves its probes and metrics.
	AgentPort int32 = 15020
	// AgentPortName is the name of AgentPort in the pod.
	AgentPortName = "serin-status"

	// Named target ports get a number in [firstNamedPort, firstNamedPort+namedPorts).
	firstNamedPort int32 = 18000
	namedPorts     int32 = 2000
)

// ErrNoPorts is the error of a split whose root Service has no ports, because it
// does not exist or because the split is refused.
var ErrNoPorts = errors.New("spec.service: the root Service has no port to serve; create it, or correct the split")

// Listener is one port that a proxy pod listens on.
type Listener struct {
	// Number of the port in the pod.
	Number int32
	// Name that the root Service calls the port by, or "" when it calls it by number.
	Name string
	// Port of the root Service that arrives here.
	Port traffic.Port
}

// Transport that the listener takes: TCP or UDP.
func (l Listener) Transport() corev1.Protocol { return l.Port.Transport() }

// Listeners are the ports on which a proxy stands in for the pods of the root
// Service, in the order of the Service. A numbered target port keeps its number.
// A named one gets a number made from the name, so that it stays the same when
// other ports come and go.
//
// Two ports of the Service with one target port arrive at the same listener, unless
// one is TCP and the other UDP, as those of DNS are. They can only be served when they
// are split alike.
func Listeners(split traffic.Split) ([]Listener, error) {
	if len(split.Ports) == 0 {
		return nil, ErrNoPorts
	}
	numbers, err := namedNumbers(split.Ports)
	if err != nil {
		return nil, err
	}
	listeners := make([]Listener, 0, len(split.Ports))
	for _, port := range split.Ports {
		l := Listener{Number: port.TargetNumber, Name: port.TargetName, Port: port}
		if l.Name != "" {
			l.Number = numbers[l.Name]
		}
		if err := checkListener(l, listeners); err != nil {
			return nil, err
		}
		same := slices.IndexFunc(listeners, func(o Listener) bool { return o.Number == l.Number && o.Transport() == l.Transport() })
		if same < 0 {
			listeners = append(listeners, l)
			continue
		}
		if err := checkAlike(listeners[same], l); err != nil {
			return nil, err
		}
	}
	return listeners, nil
}

// checkListener refuses a port that no proxy pod can listen on beside the others.
func checkListener(l Listener, others []Listener) error {
	namesake := func(o Listener) bool { return l.Name != "" && o.Name == l.Name && o.Transport() != l.Transport() }
	switch {
	case slices.ContainsFunc(others, namesake):
		return fmt.Errorf("spec.service: the target port %q is called by TCP and by UDP, but a pod can have each port name only once; "+
			"give each its own name, such as %s-udp", l.Name, l.Name)
	case l.Number == AgentPort:
		return fmt.Errorf("spec.service: target port %d of port %d is the port of the proxy's own status; use another target port",
			l.Number, l.Port.Number)
	case l.Number < 1 || l.Number > 65535:
		return fmt.Errorf("spec.service: port %d has the target port %d; it must be between 1 and 65535", l.Port.Number, l.Number)
	}
	return nil
}

// checkAlike refuses two ports that arrive at one listener and want different things.
func checkAlike(a, b Listener) error {
	if a.Port.Protocol != b.Port.Protocol {
		return fmt.Errorf("spec.service: ports %d and %d share a target port but are %s and %s; give them the same appProtocol, or the same protocol in %s",
			a.Port.Number, b.Port.Number, a.Port.Protocol, b.Port.Protocol, traffic.FieldPorts)
	}
	wa, wb := weightsOf(a.Port), weightsOf(b.Port)
	switch {
	case maps.Equal(wa, wb):
		return nil
	case maps.EqualFunc(wa, wb, func(int32, int32) bool { return true }):
		return fmt.Errorf("%s: ports %d and %d share a target port, and proxies can't tell their traffic apart; give them the same weights",
			traffic.FieldPorts, a.Port.Number, b.Port.Number)
	}
	return fmt.Errorf("spec.service: ports %d and %d share a target port but not the same backends; give every backend both ports",
		a.Port.Number, b.Port.Number)
}

// weightsOf are the weights of a port's backends by Service.
func weightsOf(p traffic.Port) map[string]int32 {
	m := map[string]int32{}
	for _, d := range p.Destinations {
		m[d.Service] = d.Weight
	}
	// What is no backend has no weight, and no Service's name has a space.
	for kind, d := range map[string]*traffic.Destination{"default ": p.Default, "mirror ": p.Mirror} {
		if d != nil {
			m[kind+d.Service] = 0
		}
	}
	return m
}

// namedNumbers chooses the numbers of the named target ports.
func namedNumbers(ports []traffic.Port) (map[string]int32, error) {
	taken := map[int32]bool{AgentPort: true}
	var names []string
	for _, p := range ports {
		if p.TargetName == "" {
			taken[p.TargetNumber] = true
			continue
		}
		names = append(names, p.TargetName)
	}
	slices.SortFunc(names, cmp.Compare)
	names = slices.Compact(names)
	if len(names)+len(taken) > int(namedPorts) {
		return nil, fmt.Errorf("spec.service: %d ports are more than a proxy can listen on; at most %d", len(ports), namedPorts/2)
	}
	numbers := make(map[string]int32, len(names))
	for _, name := range names {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // a hash never fails
		offset := int32(h.Sum32() % uint32(namedPorts))
		for taken[firstNamedPort+offset] {
			offset = (offset + 1) % namedPorts
		}
		numbers[name] = firstNamedPort + offset
		taken[firstNamedPort+offset] = true
	}
	return numbers, nil
}
