// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic"
)

// appProtocols are the values of a Service port's appProtocol that name a protocol
// whose requests Serin can distinguish. Any other value is a byte stream to Serin: TLS
// (https) is passed through connection by connection.
var appProtocols = map[string]traffic.Protocol{
	"http":              traffic.ProtocolHTTP,
	"http/1.1":          traffic.ProtocolHTTP,
	"ws":                traffic.ProtocolHTTP,
	"kubernetes.io/ws":  traffic.ProtocolHTTP,
	"grpc":              traffic.ProtocolHTTP2,
	"h2c":               traffic.ProtocolHTTP2,
	"http2":             traffic.ProtocolHTTP2,
	"kubernetes.io/h2c": traffic.ProtocolHTTP2,
}

// names are the first words of port names that stand for something other than
// HTTP/1.1, by the convention <protocol>[-<suffix>] that meshes share. h2 is HTTP/2
// in TLS.
var names = map[string]traffic.Protocol{
	"amqp": traffic.ProtocolTCP, "grpc": traffic.ProtocolHTTP2, "h2": traffic.ProtocolTCP, "h2c": traffic.ProtocolHTTP2, "http2": traffic.ProtocolHTTP2,
	"https": traffic.ProtocolTCP, "kafka": traffic.ProtocolTCP, "ldap": traffic.ProtocolTCP, "ldaps": traffic.ProtocolTCP, "mongo": traffic.ProtocolTCP,
	"mqtt": traffic.ProtocolTCP, "mysql": traffic.ProtocolTCP, "nats": traffic.ProtocolTCP, "postgres": traffic.ProtocolTCP,
	"postgresql": traffic.ProtocolTCP, "redis": traffic.ProtocolTCP, "smtp": traffic.ProtocolTCP, "ssh": traffic.ProtocolTCP, "tcp": traffic.ProtocolTCP,
	"tls": traffic.ProtocolTCP, "wss": traffic.ProtocolTCP,
}

// grpcWeb begins the names of ports that speak gRPC-Web, by the convention of meshes.
// That is carried by HTTP/1.1 as well as by HTTP/2, and which of them is not said.
const grpcWeb = "grpc-web"

// ProtocolOf tells what a port of the root Service speaks: by its transport, else by
// appProtocol, else by the first word of the port's name, else HTTP/1.1. SCTP is
// unsupported.
func ProtocolOf(port corev1.ServicePort) traffic.Protocol {
	switch transport(port) {
	case corev1.ProtocolTCP:
	case corev1.ProtocolUDP:
		return traffic.ProtocolUDP
	default:
		return traffic.ProtocolUnsupported
	}
	if port.AppProtocol != nil && *port.AppProtocol != "" {
		if p, ok := appProtocols[strings.ToLower(*port.AppProtocol)]; ok {
			return p
		}
		return traffic.ProtocolTCP
	}
	name := strings.ToLower(port.Name)
	if name == grpcWeb || strings.HasPrefix(name, grpcWeb+"-") {
		return traffic.ProtocolTCP
	}
	word, _, _ := strings.Cut(name, "-")
	if p, ok := names[word]; ok {
		return p
	}
	return traffic.ProtocolHTTP
}
