// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// maxRoutes is the most routes that a split may name.
const maxRoutes = 16

// kindVirtualService is the kind of routes that has sections.
const kindVirtualService = "VirtualService"

// routeKinds are the kinds of routes that a split may name.
var routeKinds = []string{"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute", kindVirtualService}

// Route is a route of a gateway or mesh, in the split's namespace.
type Route = splitv1.RouteReference

// RouteNames are the routes that a split names, as far as they can be read.
func RouteNames(split *splitv1.TrafficSplit) []Route {
	routing, _ := splitv1.RoutingOf(split)
	routes, _ := RoutesOf(routing)
	return routes
}

// RoutesOf are the routes of a split, if all of them are right.
func RoutesOf(r splitv1.Routing) ([]Route, error) {
	for i, route := range r.Routes {
		if err := checkRoute(route); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", FieldRoutes, i, err)
		}
		if slices.Contains(r.Routes[:i], route) {
			return nil, fmt.Errorf("%s[%d]: %s is named twice; keep one of them", FieldRoutes, i, route)
		}
	}
	if len(r.Routes) > maxRoutes {
		return nil, fmt.Errorf("%s: names %d routes; at most %d", FieldRoutes, len(r.Routes), maxRoutes)
	}
	return r.Routes, nil
}

func checkRoute(r Route) error {
	switch {
	case !slices.Contains(routeKinds, r.Kind) || len(validation.IsDNS1123Subdomain(r.Name)) > 0:
		return fmt.Errorf("%.100q is not a route; write its kind and name, such as {kind: HTTPRoute, name: website}, with a kind of %s",
			r.String(), strings.Join(routeKinds, ", "))
	case r.Section != "" && (r.Kind != kindVirtualService || len(r.Section) > validation.DNS1123SubdomainMaxLength):
		return fmt.Errorf("%.100q: only a VirtualService has sections; remove section", r.String())
	}
	return nil
}
