// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// protocols are what Istio takes the traffic of a port for, by its appProtocol or
// the first word of its name, and the list of routes that applies to it.
var protocols = map[string]string{
	"grpc": sectionHTTP, "http": sectionHTTP, "http2": sectionHTTP, "http_proxy": sectionHTTP,
	"kubernetes.io/h2c": sectionHTTP, "kubernetes.io/ws": sectionHTTP,
	"https": sectionTLS, "tls": sectionTLS, "kubernetes.io/wss": sectionTLS,
	"tcp": sectionTCP, "mongo": sectionTCP, "mysql": sectionTCP, "redis": sectionTCP,
}

// plainPorts are the numbers that Istio takes for byte streams when nothing else is
// said: SMTP, MySQL and MongoDB, where the server speaks first.
var plainPorts = map[int32]bool{25: true, 3306: true, 27017: true}

// sectionOf is the list of routes that applies to a port; "" for one that Istio looks
// into to see whether it is HTTP.
func sectionOf(p corev1.ServicePort) string {
	name := p.Name
	if p.AppProtocol != nil {
		name = *p.AppProtocol
	}
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "grpc-web") {
		return sectionHTTP
	}
	if section, found := protocols[name]; found {
		return section
	}
	word, _, _ := strings.Cut(name, "-")
	if section, found := protocols[word]; found {
		return section
	}
	if plainPorts[p.Port] {
		return sectionTCP
	}
	return ""
}
