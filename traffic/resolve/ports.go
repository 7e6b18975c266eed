// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// maxWeighedPorts is the most ports of a Service whose weights a status can hold.
const maxWeighedPorts = 100

// portID tells the ports of a Service apart: "<number>/<transport>".
type portID string

func idOf(p corev1.ServicePort) portID {
	return portID(strconv.Itoa(int(p.Port)) + "/" + string(transport(p)))
}

// overrides are what a split says of individual ports.
type overrides struct {
	// weights of the backends of a port; nil for a port with those of spec.backends.
	weights map[portID]map[string]int32
	// protocols that ports speak, whatever the Service says.
	protocols map[portID]traffic.Protocol
}

// overridesOf are those of a split. An error names the first port that is wrong.
func overridesOf(split *splitv1.TrafficSplit, r splitv1.Routing) (overrides, error) {
	o := overrides{weights: map[portID]map[string]int32{}, protocols: map[portID]traffic.Protocol{}}
	for _, name := range slices.Sorted(maps.Keys(r.Ports)) {
		id, port := portID(name), r.Ports[name]
		if err := o.add(split, id, port); err != nil {
			return overrides{}, fmt.Errorf("%s[%.100q]: %w", traffic.FieldPorts, name, err)
		}
	}
	return o, nil
}

// add takes the rules of one port.
func (o overrides) add(split *splitv1.TrafficSplit, id portID, port splitv1.PortRouting) error {
	if err := id.check(); err != nil {
		return err
	}
	if port.Protocol == "" && port.Weights == nil {
		return errors.New("is empty; give it a protocol or weights, or remove it")
	}
	if port.Protocol != "" {
		protocol, err := protocolOn(id, port.Protocol)
		if err != nil {
			return fmt.Errorf("protocol: %w", err)
		}
		o.protocols[id] = protocol
	}
	if port.Weights != nil {
		weights, err := portWeights(split, port.Weights)
		if err != nil {
			return fmt.Errorf("weights: %w", err)
		}
		o.weights[id] = weights
	}
	return nil
}

// protocolOf is what a port of the root Service is taken for.
func (o overrides) protocolOf(p corev1.ServicePort) traffic.Protocol {
	if protocol, found := o.protocols[idOf(p)]; found {
		return protocol
	}
	return ProtocolOf(p)
}

// weightOf is the weight of a backend on a port, given that of spec.backends.
func (o overrides) weightOf(p corev1.ServicePort, backend string, weight int32) int32 {
	if weights, found := o.weights[idOf(p)]; found {
		return weights[backend]
	}
	return weight
}

// portWeights are the weights of one port.
func portWeights(split *splitv1.TrafficSplit, given map[string]splitv1.PortWeight) (map[string]int32, error) {
	weights := make(map[string]int32, len(given))
	var total int64
	for _, backend := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(split.Spec.Backends, func(b splitv1.Backend) bool { return b.Service == backend }) {
			return nil, fmt.Errorf("%.100q is not a backend of this split; name one of spec.backends, or add it there", backend)
		}
		weights[backend] = int32(given[backend])
		total += int64(given[backend])
	}
	if total == 0 {
		return nil, errors.New("at least one weight must be above 0, or no request could be answered; give one, or leave the weights out for those of spec.backends")
	}
	return weights, nil
}

// portProtocols are the protocols that a split can name, with the transport that
// carries them.
var portProtocols = map[string]struct {
	protocol  traffic.Protocol
	transport corev1.Protocol
}{
	"HTTP":  {traffic.ProtocolHTTP, corev1.ProtocolTCP},
	"HTTP2": {traffic.ProtocolHTTP2, corev1.ProtocolTCP},
	"HTTPS": {traffic.ProtocolTCP, corev1.ProtocolTCP}, // its bytes are passed on unread
	"TCP":   {traffic.ProtocolTCP, corev1.ProtocolTCP},
	"UDP":   {traffic.ProtocolUDP, corev1.ProtocolUDP},
}

// protocolOn is the protocol of a name on a port.
func protocolOn(id portID, name string) (traffic.Protocol, error) {
	known, found := portProtocols[name]
	switch {
	case !found:
		return "", fmt.Errorf("%.40q is not a protocol; write one of %s", name, strings.Join(slices.Sorted(maps.Keys(portProtocols)), ", "))
	case known.transport != id.transport():
		return "", fmt.Errorf("%s is not carried by %s; write a protocol of %s, or name the port %s", name, id.transport(), id.transport(), id.over(known.transport))
	}
	return known.protocol, nil
}

// check refuses the name of a port that is none.
func (id portID) check() error {
	number, _, _ := strings.Cut(string(id), "/")
	n, err := strconv.ParseUint(number, 10, 16)
	if t := id.transport(); err == nil && n > 0 && id == portID(strconv.FormatUint(n, 10)+"/"+string(t)) &&
		(t == corev1.ProtocolTCP || t == corev1.ProtocolUDP) {
		return nil
	}
	return errors.New("is not a port's number and transport; write it like 80/TCP or 53/UDP")
}

func (id portID) transport() corev1.Protocol {
	_, t, _ := strings.Cut(string(id), "/")
	return corev1.Protocol(t)
}

// over is the port of the same number over another transport.
func (id portID) over(t corev1.Protocol) portID {
	number, _, _ := strings.Cut(string(id), "/")
	return portID(number + "/" + string(t))
}

// checkPorts refuses rules of ports that the root Service has not.
func checkPorts(o overrides, root *corev1.Service) []traffic.Problem {
	known := map[portID]bool{}
	var ids []string
	for _, p := range root.Spec.Ports {
		known[idOf(p)] = true
		ids = append(ids, string(idOf(p)))
	}
	named := slices.AppendSeq(slices.Collect(maps.Keys(o.weights)), maps.Keys(o.protocols))
	slices.Sort(named)
	var problems []traffic.Problem
	for _, id := range slices.Compact(named) {
		if !known[id] {
			problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "%s: Service %q has no port %s; name one of %.200s, or remove it",
				traffic.FieldPorts, root.Name, id, strings.Join(ids, ", ")))
		}
	}
	if len(o.weights) > 0 && len(root.Spec.Ports) > maxWeighedPorts {
		problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "%s: Service %q has %d ports, and weights of their own can be given to at most %d; move some to another Service",
			traffic.FieldPorts, root.Name, len(root.Spec.Ports), maxWeighedPorts))
	}
	return problems
}
