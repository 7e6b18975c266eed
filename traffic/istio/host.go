// SPDX-License-Identifier: Apache-2.0

package istio

import "strings"

// host is the name of a Service as a VirtualService writes it: the Service's name,
// and what follows it, such as "", ".shop" or ".shop.svc.cluster.local".
type host struct {
	service, domain string
}

// parseHost reads a host. It is a Service of the namespace if it is a name alone,
// which Istio reads in the namespace of the VirtualService, or if the namespace and
// svc follow.
func parseHost(text, namespace string) (host, bool) {
	service, domain, qualified := strings.Cut(text, ".")
	if !qualified {
		return host{service: service}, service != "" && service != "*"
	}
	space, rest, more := strings.Cut(domain, ".")
	if space != namespace || more && rest != "svc" && !strings.HasPrefix(rest, "svc.") {
		return host{}, false
	}
	return host{service, "." + domain}, service != ""
}

// hostOf is a host that is known to be a Service of the namespace.
func hostOf(text string) host {
	service, _, _ := strings.Cut(text, ".")
	return host{service, strings.TrimPrefix(text, service)}
}

// isService tells whether a host stands for a Service of the namespace.
func isService(text, namespace, service string) bool {
	h, ok := parseHost(text, namespace)
	return ok && h.service == service
}

// named is the host of another Service of the namespace, written the same way.
func (h host) named(service string) string { return service + h.domain }
