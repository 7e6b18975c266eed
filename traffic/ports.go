// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Fields of a split that say something of single ports.
const (
	fieldPortWeights   = "metadata.annotations[" + splitv1.AnnotationPortWeights + "]"
	fieldPortProtocols = "metadata.annotations[" + splitv1.AnnotationPortProtocols + "]"
)

// maxWeighedPorts is the most ports of a Service whose weights a status can hold.
const maxWeighedPorts = 100

// Forms of the annotations, for messages.
const (
	exampleWeights   = `{"80/TCP": {"website-stable": 90, "website-canary": 10}}`
	exampleProtocols = `{"6379/TCP": "TCP"}`
)

// portID tells the ports of a Service apart: "<number>/<transport>".
type portID string

func idOf(p corev1.ServicePort) portID {
	return portID(strconv.Itoa(int(p.Port)) + "/" + string(transport(p)))
}

// overrides are what a split says of single ports.
type overrides struct {
	// weights of the backends of a port; nil for a port with those of spec.backends.
	weights map[portID]map[string]int32
	// protocols that ports speak, whatever the Service says.
	protocols map[portID]Protocol
}

// overridesOf are those of a split, as far as they can be read.
func overridesOf(split *splitv1.TrafficSplit) overrides {
	weights, _ := portWeightsOf(split) // checkPortRules tells what can't be read
	protocols, _ := portProtocolsOf(split)
	return overrides{weights, protocols}
}

// protocolOf is what a port of the root Service is taken for.
func (o overrides) protocolOf(p corev1.ServicePort) Protocol {
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

// portWeightsOf reads the annotation; nil when there is none.
func portWeightsOf(split *splitv1.TrafficSplit) (map[portID]map[string]int32, error) {
	text, found := split.Annotations[splitv1.AnnotationPortWeights]
	if !found {
		return nil, nil //nolint:nilnil // that no port has weights of its own is no error
	}
	var read map[portID]map[string]*float64
	if err := readPorts(text, &read); err != nil {
		return nil, fmt.Errorf("%s: %w; write it like %s, or remove the annotation", fieldPortWeights, err, exampleWeights)
	}
	ports := make(map[portID]map[string]int32, len(read))
	for _, id := range slices.Sorted(maps.Keys(read)) {
		weights, err := portWeights(split, read[id])
		if err == nil {
			err = id.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: port %.100q: %w", fieldPortWeights, string(id), err)
		}
		ports[id] = weights
	}
	return ports, nil
}

// portWeights are the weights of one port.
func portWeights(split *splitv1.TrafficSplit, read map[string]*float64) (map[string]int32, error) {
	weights := make(map[string]int32, len(read))
	var total int64
	for _, backend := range slices.Sorted(maps.Keys(read)) {
		weight := read[backend]
		switch {
		case !slices.ContainsFunc(split.Spec.Backends, func(b splitv1.Backend) bool { return b.Service == backend }):
			return nil, fmt.Errorf("%.100q is no backend of this split; name one of spec.backends, or add it there", backend)
		case weight == nil || *weight != math.Trunc(*weight) || *weight < 0 || *weight > math.MaxInt32:
			return nil, fmt.Errorf("the weight of %q is not a whole number from 0 to %d; correct it", backend, math.MaxInt32)
		}
		weights[backend] = int32(*weight)
		total += int64(*weight)
	}
	if total == 0 {
		return nil, errors.New("at least one weight must be above 0, or no request could be answered; give one, or leave the port out for the weights of spec.backends")
	}
	return weights, nil
}

// portProtocols are the protocols that the annotation can name, with the transport that
// carries them.
var portProtocols = map[string]struct {
	protocol  Protocol
	transport corev1.Protocol
}{
	"HTTP":  {ProtocolHTTP, corev1.ProtocolTCP},
	"HTTP2": {ProtocolHTTP2, corev1.ProtocolTCP},
	"HTTPS": {ProtocolTCP, corev1.ProtocolTCP}, // its bytes are passed on unread
	"TCP":   {ProtocolTCP, corev1.ProtocolTCP},
	"UDP":   {ProtocolUDP, corev1.ProtocolUDP},
}

// portProtocolsOf reads the annotation; nil when there is none.
func portProtocolsOf(split *splitv1.TrafficSplit) (map[portID]Protocol, error) {
	text, found := split.Annotations[splitv1.AnnotationPortProtocols]
	if !found {
		return nil, nil //nolint:nilnil // that the Service says it is no error
	}
	var read map[portID]string
	if err := readPorts(text, &read); err != nil {
		return nil, fmt.Errorf("%s: %w; write it like %s, or remove the annotation", fieldPortProtocols, err, exampleProtocols)
	}
	ports := make(map[portID]Protocol, len(read))
	for _, id := range slices.Sorted(maps.Keys(read)) {
		err := id.check()
		known, found := portProtocols[read[id]]
		switch {
		case err != nil:
		case !found:
			err = fmt.Errorf("%.40q is no protocol; write one of %s", read[id], strings.Join(slices.Sorted(maps.Keys(portProtocols)), ", "))
		case known.transport != id.transport():
			err = fmt.Errorf("%s is not carried by %s; write a protocol of %s, or name the port %s", read[id], id.transport(), id.transport(), id.over(known.transport))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: port %.100q: %w", fieldPortProtocols, string(id), err)
		}
		ports[id] = known.protocol
	}
	return ports, nil
}

// maxSaid is the most characters of a parser's message that are repeated.
const maxSaid = 200

// readPorts reads a JSON object, in which no key may be there twice: which of them
// holds, readers differ about.
func readPorts(text string, into any) error {
	strict, err := json.UnmarshalStrict([]byte(text), into)
	switch {
	case err != nil:
		return fmt.Errorf("is not such a JSON object (%.*s)", maxSaid, err)
	case len(strict) > 0:
		return fmt.Errorf("says something twice (%.*s)", maxSaid, strict[0])
	case strings.TrimSpace(text) == "null":
		return errors.New("is empty")
	}
	return nil
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

// checkPortRules refuses annotations about ports that can't be read.
func checkPortRules(split *splitv1.TrafficSplit) []Problem {
	var problems []Problem
	if _, err := portWeightsOf(split); err != nil {
		problems = append(problems, refuse(splitv1.ReasonInvalid, "%s", err.Error()))
	}
	if _, err := portProtocolsOf(split); err != nil {
		problems = append(problems, refuse(splitv1.ReasonInvalid, "%s", err.Error()))
	}
	return problems
}

// checkPortNames refuses annotations about ports that the root Service has not.
func checkPortNames(o overrides, root *corev1.Service) []Problem {
	known := map[portID]bool{}
	var ids []string
	for _, p := range root.Spec.Ports {
		known[idOf(p)] = true
		ids = append(ids, string(idOf(p)))
	}
	var problems []Problem
	add := func(field string, id portID) {
		if !known[id] {
			problems = append(problems, refuse(splitv1.ReasonInvalid, "%s: Service %q has no port %s; name one of %.200s, or remove it",
				field, root.Name, id, strings.Join(ids, ", ")))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.weights)) {
		add(fieldPortWeights, id)
	}
	for _, id := range slices.Sorted(maps.Keys(o.protocols)) {
		add(fieldPortProtocols, id)
	}
	if len(o.weights) > 0 && len(root.Spec.Ports) > maxWeighedPorts {
		problems = append(problems, refuse(splitv1.ReasonInvalid, "%s: Service %q has %d ports, and weights of their own can be given to at most %d; move some to another Service",
			fieldPortWeights, root.Name, len(root.Spec.Ports), maxWeighedPorts))
	}
	return problems
}
