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

// routeKinds are the kinds of routes that a split may name.
var routeKinds = []string{"HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute", "VirtualService"}

// Route is a route of somebody else, in the split's namespace.
type Route struct {
	// Kind of the route, such as HTTPRoute.
	Kind string
	// Name of the object.
	Name string
	// Section is the name of the one HTTP route of a VirtualService; "" for all of it.
	Section string `json:",omitempty"`
}

// String is the form in which a split names the route.
func (r Route) String() string {
	if r.Section == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Name + ":" + r.Section
}

// RouteNames are the routes that a split names, as far as they can be read.
func RouteNames(split *splitv1.TrafficSplit) []Route {
	routes, _ := routesOf(split)
	return routes
}

// routesOf reads the annotation; nil when there is none.
func routesOf(split *splitv1.TrafficSplit) ([]Route, error) {
	text, found := split.Annotations[splitv1.AnnotationRoutes]
	if !found {
		return nil, nil
	}
	var routes []Route
	for item := range strings.SplitSeq(text, ",") {
		route, err := parseRoute(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if slices.Contains(routes, route) {
			return nil, fmt.Errorf("%s: %s is named twice; keep one of them", fieldRoutes, route)
		}
		routes = append(routes, route)
	}
	if len(routes) > maxRoutes {
		return nil, fmt.Errorf("%s: names %d routes; at most %d", fieldRoutes, len(routes), maxRoutes)
	}
	return routes, nil
}

func parseRoute(text string) (Route, error) {
	kind, rest, _ := strings.Cut(text, "/")
	name, section, sectioned := strings.Cut(rest, ":")
	switch {
	case !slices.Contains(routeKinds, kind) || len(validation.IsDNS1123Subdomain(name)) > 0:
		return Route{}, fmt.Errorf("%s: %.100q is not a route; write its kind and name, such as HTTPRoute/website, with a kind of %s",
			fieldRoutes, text, strings.Join(routeKinds, ", "))
	case sectioned && (kind != "VirtualService" || section == "" || len(section) > validation.DNS1123SubdomainMaxLength):
		return Route{}, fmt.Errorf("%s: %.100q: only of a VirtualService one HTTP route can be named; remove what follows the colon", fieldRoutes, text)
	}
	return Route{Kind: kind, Name: name, Section: section}, nil
}

func checkRoutes(split *splitv1.TrafficSplit) []Problem {
	if _, err := routesOf(split); err != nil {
		return []Problem{refuse(splitv1.ReasonInvalid, "%s", err.Error())}
	}
	return nil
}
