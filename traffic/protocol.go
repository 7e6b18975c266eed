// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// appProtocols are the values of a Service port's appProtocol that name a protocol
// whose requests can be told apart. Any other value is a byte stream to Serin: TLS
// (https) is passed through connection by connection.
var appProtocols = map[string]Protocol{
	"http":              ProtocolHTTP,
	"http/1.1":          ProtocolHTTP,
	"ws":                ProtocolHTTP,
	"kubernetes.io/ws":  ProtocolHTTP,
	"grpc":              ProtocolHTTP2,
	"h2c":               ProtocolHTTP2,
	"http2":             ProtocolHTTP2,
	"kubernetes.io/h2c": ProtocolHTTP2,
}

// names are the first words of port names that stand for something other than
// HTTP/1.1, by the convention <protocol>[-<suffix>] that meshes share. h2 is HTTP/2
// in TLS.
var names = map[string]Protocol{
	"amqp": ProtocolTCP, "grpc": ProtocolHTTP2, "h2": ProtocolTCP, "h2c": ProtocolHTTP2, "http2": ProtocolHTTP2,
	"https": ProtocolTCP, "kafka": ProtocolTCP, "ldap": ProtocolTCP, "ldaps": ProtocolTCP, "mongo": ProtocolTCP,
	"mqtt": ProtocolTCP, "mysql": ProtocolTCP, "nats": ProtocolTCP, "postgres": ProtocolTCP,
	"postgresql": ProtocolTCP, "redis": ProtocolTCP, "smtp": ProtocolTCP, "ssh": ProtocolTCP, "tcp": ProtocolTCP,
	"tls": ProtocolTCP, "wss": ProtocolTCP,
}

// grpcWeb begins the names of ports that speak gRPC-Web, by the convention of meshes.
// That is carried by HTTP/1.1 as well as by HTTP/2, and which of them is not said.
const grpcWeb = "grpc-web"

// ProtocolOf tells what a port of the root Service speaks: by its transport, else by
// appProtocol, else by the first word of the port's name, else HTTP/1.1. SCTP is
// unsupported.
func ProtocolOf(port corev1.ServicePort) Protocol {
	switch transport(port) {
	case corev1.ProtocolTCP:
	case corev1.ProtocolUDP:
		return ProtocolUDP
	default:
		return ProtocolUnsupported
	}
	if port.AppProtocol != nil && *port.AppProtocol != "" {
		if p, ok := appProtocols[strings.ToLower(*port.AppProtocol)]; ok {
			return p
		}
		return ProtocolTCP
	}
	name := strings.ToLower(port.Name)
	if name == grpcWeb || strings.HasPrefix(name, grpcWeb+"-") {
		return ProtocolTCP
	}
	word, _, _ := strings.Cut(name, "-")
	if p, ok := names[word]; ok {
		return p
	}
	return ProtocolHTTP
}
