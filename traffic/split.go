// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Split is a TrafficSplit with every reference resolved.
type Split struct {
	// Name and namespace of the TrafficSplit.
	types.NamespacedName
	// Generation of the TrafficSplit that this form was made from.
	Generation int64
	// Root is the name of the root Service.
	Root string
	// Ports are the ports of the root Service, in its order.
	Ports []Port
	// Limited is true when the weights share only the requests of Matches. All
	// others go to the Default of their port.
	Limited bool `json:",omitempty"`
	// Matches are the sets of requests that a limited split shares: a request has to
	// be in one of them. When there is none, no request is shared.
	Matches []Match `json:",omitempty"`
	// Mirror says which requests are copied to one more backend; nil for none.
	Mirror *Mirror `json:",omitempty"`
	// Sticky says how clients come back to the backend that they were given first; nil
	// when each request is drawn independently.
	Sticky *Sticky `json:",omitempty"`
	// Routes of users that are patched to name the backends.
	Routes []Route `json:",omitempty"`
	// PortWeights is true when ports were given weights of their own, so that those of
	// the ports may differ.
	PortWeights bool `json:",omitempty"`
	// PortProtocols is true when ports were said to speak something else than the root
	// Service says.
	PortProtocols bool `json:",omitempty"`
}

// Weight is the largest weight that a backend has on any port; 0 when no port sends it
// traffic.
func (s Split) Weight(service string) int32 {
	var largest int32
	for _, p := range s.Ports {
		for _, d := range p.Destinations {
			if d.Service == service {
				largest = max(largest, d.Weight)
			}
		}
	}
	return largest
}

// Unroutable are the ports whose requests no backend can take: none has a weight above
// 0, or a limited split has no default. A data plane refuses such requests (503, or a
// closed connection), so the root Service is not cut over to it while there is one.
func (s Split) Unroutable() []Port {
	var ports []Port
	for _, p := range s.Ports {
		if p.TotalWeight() == 0 || s.Limited && p.Default == nil {
			ports = append(ports, p)
		}
	}
	return ports
}

// Port is one port of the root Service with the destinations that share its traffic.
type Port struct {
	// Name of the port in the root Service; empty when it has none.
	Name string
	// Number that clients call.
	Number int32
	// TargetNumber is the number of the target port, or 0 when the Service names it.
	TargetNumber int32
	// TargetName is the name of the target port, or "" when the Service numbers it.
	TargetName string
	// Protocol that the destinations speak.
	Protocol Protocol
	// Destinations share the traffic of the port. Their weights sum to more than 0
	// unless no backend can take the port.
	Destinations []Destination
	// Default gets the requests that a limited split does not share. It is nil when
	// the split is not limited or the default backend can't take the port.
	Default *Destination `json:",omitempty"`
	// Mirror gets the mirrored requests. It is nil when nothing is mirrored or the
	// mirror's backend can't take the port. Its weight has no meaning.
	Mirror *Destination `json:",omitempty"`
}

// Transport that clients call the port by.
func (p Port) Transport() corev1.Protocol {
	if p.Protocol == ProtocolUDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// TotalWeight is the sum of the weights of the port's destinations.
func (p Port) TotalWeight() int64 {
	var total int64
	for _, d := range p.Destinations {
		total += int64(d.Weight)
	}
	return total
}

// Reachable are the destinations that users' requests can go to, each once.
func (p Port) Reachable() []Destination {
	all := slices.Clone(p.Destinations)
	if d := p.Default; d != nil && !slices.ContainsFunc(all, func(o Destination) bool { return o.Service == d.Service }) {
		all = append(all, *d)
	}
	return all
}

// Receivers are the destinations that requests of users and mirrored ones go to.
func (p Port) Receivers() []Destination {
	all := p.Reachable()
	if p.Mirror != nil {
		all = append(all, *p.Mirror)
	}
	return all
}

// Destination is a backend Service's share of one port.
type Destination struct {
	// Service is the name of the backend.
	Service string
	// Address is the Service's ClusterIP, so that kube-proxy goes on to honour
	// readiness and topology.
	Address string
	// Port of the Service.
	Port int32
	// Weight relative to the other destinations of the port; may be 0.
	Weight int32
}

// Protocol is what a port speaks, and so what is split: requests, connections or sessions.
type Protocol string

// The protocols that a port can have.
const (
	// ProtocolHTTP is HTTP/1.1: requests are split one by one.
	ProtocolHTTP Protocol = "HTTP"
	// ProtocolHTTP2 is HTTP/2 without TLS, with prior knowledge: what gRPC is carried
	// by. Requests, which are the calls of gRPC, are split one by one.
	ProtocolHTTP2 Protocol = "HTTP2"
	// ProtocolTCP is any byte stream: connections are split one by one.
	ProtocolTCP Protocol = "TCP"
	// ProtocolUDP is datagrams: what one address and port of a client sends is split as
	// one session.
	ProtocolUDP Protocol = "UDP"
	// ProtocolUnsupported is something that Serin can't split, such as SCTP.
	ProtocolUnsupported Protocol = "Unsupported"
)

// HasRequests is true when requests are split one by one, so that they can be
// matched.
func (p Protocol) HasRequests() bool { return p == ProtocolHTTP || p == ProtocolHTTP2 }

// Match is a set of requests: those that meet every condition. Without conditions
// it holds every request. All expressions passed CheckExpression.
type Match struct {
	// Group and Name are where the set is defined, for messages.
	Group, Name string
	// Methods that a request may have; empty for any.
	Methods []string
	// Path is the expression that the path, as it was sent and without the query, has
	// to match from its start; "" for any path.
	Path string
	// Headers that a request must have.
	Headers []Header
}

// Header is a condition on one header. A header that is absent or empty meets none.
type Header struct {
	// Name of the header in lower case.
	Name string
	// Regex is the expression that has to match a part of the value. It does not match
	// an empty one.
	Regex string
}

// String names the set in messages.
func (m Match) String() string {
	return fmt.Sprintf("HTTPRouteGroup %q, match %q", m.Group, m.Name)
}

// Conditions is the number of conditions of the set.
func (m Match) Conditions() int {
	n := len(m.Headers)
	if len(m.Methods) > 0 {
		n++
	}
	if m.Path != "" {
		n++
	}
	return n
}

// Mirror says which requests are copied to one more backend.
type Mirror struct {
	// Service that gets the mirrored requests.
	Service string
	// Percent of the requests to other backends that are mirrored, 1 to 100.
	Percent int32
}

// Sticky says how clients come back to the backend that they were given first.
type Sticky struct {
	// Cookie is the name of the cookie by which a client is known.
	Cookie string
	// MaxAge of the cookie, in seconds; 0 for as long as the client's session lasts.
	MaxAge int64 `json:",omitempty"`
	// Session whose cookies count; those of another one do not.
	Session string `json:",omitempty"`
}

// Digest differs between splits that are served differently. It does not depend on the
// generation: annotations, Services and HTTPRouteGroups change what is served and
// leave the generation as it is, and so a proxy reports both. 16 hexadecimal digits.
//
// After an upgrade of the operator, proxies of the version before are asked too. So
// what is added to Split is left out of the text while it is empty, and splits that
// do not use it keep their digest.
func (s Split) Digest() string {
	s.Generation = 0
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings, numbers and lists of them always have a text
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
