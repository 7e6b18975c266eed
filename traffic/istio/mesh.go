// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/traffic"
)

// meshGateway stands for the sidecars of the clients.
const meshGateway = "mesh"

// MakeMeshSpec is the spec of the VirtualService that a split without routes of users
// has: it leads the clients of the root Service within the mesh to the
// backends, port by port.
func MakeMeshSpec(split traffic.Split, root *corev1.Service) (map[string]any, error) {
	spec := map[string]any{"hosts": []any{split.Root}, "gateways": []any{meshGateway}}
	for _, p := range split.Ports {
		section, err := meshSection(p, root)
		if err != nil {
			return nil, err
		}
		number := int64(p.Number)
		route := map[string]any{
			"match": []any{map[string]any{"port": number}},
			"route": []any{map[string]any{"destination": map[string]any{"host": split.Root, "port": map[string]any{"number": number}}}},
		}
		out, err := renderRoute(section, route, split, nil)
		if err != nil {
			return nil, fmt.Errorf("port %d: %w", p.Number, err)
		}
		list, _ := spec[section].([]any)
		spec[section] = append(list, out.all()...)
	}
	if len(split.Ports) == 0 {
		return nil, errors.New("nothing is known of the root Service's ports")
	}
	return spec, nil
}

// meshSection is the list of routes for one port of the root Service.
func meshSection(p traffic.Port, root *corev1.Service) (string, error) {
	if p.Protocol == traffic.ProtocolUDP {
		return "", fmt.Errorf("port %d of Service %q is UDP, which Istio does not route; move it to a Service of its own", p.Number, root.Name)
	}
	section := ""
	for _, sp := range root.Spec.Ports {
		if sp.Port == p.Number && sp.Protocol != corev1.ProtocolUDP {
			section = sectionOf(sp)
		}
	}
	switch {
	case section == sectionTLS:
		return "", fmt.Errorf("port %d of Service %q is TLS, which Istio routes by the names that clients ask for; "+
			"name a VirtualService with tls routes in routes of the annotation serin.dev/routing", p.Number, root.Name)
	case section == "" && p.Protocol.HasRequests():
		return sectionHTTP, nil
	case section == "":
		return sectionTCP, nil
	}
	return section, nil
}

// serves is true when a VirtualService has the traffic of a Service within the mesh:
// Istio takes only the oldest of those that do.
func serves(spec map[string]any, namespace, service string) bool {
	return slices.ContainsFunc(meshHosts(spec), func(h any) bool { return isService(text(h), namespace, service) })
}

// meshHosts are the hosts that a VirtualService has within the mesh.
func meshHosts(spec map[string]any) []any {
	gateways, _ := spec["gateways"].([]any)
	if len(gateways) > 0 && !slices.Contains(gateways, any(meshGateway)) {
		return nil
	}
	hosts, _ := spec["hosts"].([]any)
	return hosts
}

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
