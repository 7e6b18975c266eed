// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// appProtocols are the values of a Service port's appProtocol that name HTTP/1.1,
// which alone can be split request by request. Any other value is a byte stream
// to Serin: HTTP/2 with prior knowledge (kubernetes.io/h2c, grpc) and TLS (https)
// are passed through connection by connection.
var appProtocols = map[string]Protocol{
	"http":             ProtocolHTTP,
	"http/1.1":         ProtocolHTTP,
	"ws":               ProtocolHTTP,
	"kubernetes.io/ws": ProtocolHTTP,
}

// streamNames are the prefixes of port names that stand for something other than
// HTTP/1.1, by the convention <protocol>[-<suffix>] that meshes share.
var streamNames = map[string]bool{
	"amqp": true, "grpc": true, "h2": true, "h2c": true, "http2": true,
	"https": true, "kafka": true, "ldap": true, "ldaps": true, "mongo": true,
	"mqtt": true, "mysql": true, "nats": true, "postgres": true,
	"postgresql": true, "redis": true, "smtp": true, "ssh": true, "tcp": true,
	"tls": true, "wss": true,
}

// ProtocolOf tells what a port of the root Service speaks: by appProtocol, else
// by the first word of the port's name, else HTTP/1.1. Protocols other than TCP
// are unsupported.
func ProtocolOf(port corev1.ServicePort) Protocol {
	if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
		return ProtocolUnsupported
	}
	if port.AppProtocol != nil && *port.AppProtocol != "" {
		if p, ok := appProtocols[strings.ToLower(*port.AppProtocol)]; ok {
			return p
		}
		return ProtocolTCP
	}
	word, _, _ := strings.Cut(strings.ToLower(port.Name), "-")
	if streamNames[word] {
		return ProtocolTCP
	}
	return ProtocolHTTP
}
