// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"strings"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// RouterName is the router that a split asks for, fallback when it names none. A split
// whose routing can't be read stays with the router that leads it.
func RouterName(split *splitv1.TrafficSplit, fallback string) string {
	routing, err := splitv1.RoutingOf(split)
	if err != nil {
		return cmp.Or(split.Status.Router, fallback)
	}
	return cmp.Or(routing.Router, fallback)
}

// DefaultBackend is the Service that a split names for the requests that are not split;
// "" when it names none, or can't be read.
func DefaultBackend(split *splitv1.TrafficSplit) string {
	routing, _ := splitv1.RoutingOf(split)
	return routing.DefaultBackend
}

// LeavesUnmatched is true for a split whose requests that match none go to the root Service's
// own pods: it is limited and names no default backend.
func LeavesUnmatched(split *splitv1.TrafficSplit) bool {
	return len(split.Spec.Matches) > 0 && DefaultBackend(split) == ""
}

// RootName is the name of the root Service: spec.service, or its first label
// when it is a domain name of a Service in the split's own namespace. A Service's
// name has no dots, so what follows the first one can only be a domain.
func RootName(split *splitv1.TrafficSplit) (string, error) {
	name, domain, qualified := strings.Cut(split.Spec.Service, ".")
	if name == "" {
		return "", fmt.Errorf("spec.service: %q names no Service; write the name of a Service in the split's namespace",
			split.Spec.Service)
	}
	if !qualified {
		return name, nil
	}
	namespace, rest, more := strings.Cut(domain, ".")
	if namespace != split.Namespace || more && rest != "svc" && !strings.HasPrefix(rest, "svc.") {
		return "", fmt.Errorf("spec.service: %q is not a Service in namespace %q; write the name of one, or %s.%s.svc",
			split.Spec.Service, split.Namespace, name, split.Namespace)
	}
	return name, nil
}
