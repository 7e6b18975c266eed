// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "slices"

// Group is the API group of the routes.
const Group = "gateway.networking.k8s.io"

// The kinds of routes.
const (
	kindHTTPRoute = "HTTPRoute"
	kindGRPCRoute = "GRPCRoute"
	kindTCPRoute  = "TCPRoute"
	kindTLSRoute  = "TLSRoute"
	kindUDPRoute  = "UDPRoute"
	kindTLSPolicy = "BackendTLSPolicy"
)

// The kinds that say what the data plane of a route can do.
const (
	kindGateway      = "Gateway"
	kindGatewayClass = "GatewayClass"
)

// routeVersions are the versions of each kind that this package knows, the best one
// first. What it reads and writes is the same in all of them.
var routeVersions = map[string][]string{
	kindHTTPRoute: {"v1", "v1beta1"},
	kindGRPCRoute: {"v1"},
	kindTCPRoute:  {"v1", "v1alpha2"},
	kindTLSRoute:  {"v1", "v1alpha3", "v1alpha2"},
	kindUDPRoute:  {"v1", "v1alpha2"},
	kindTLSPolicy: {"v1", "v1alpha3"},

	kindGateway:      {"v1", "v1beta1"},
	kindGatewayClass: {"v1", "v1beta1"},
}

// routeKinds are the kinds of routes in the order in which they are handled.
var routeKinds = []string{kindHTTPRoute, kindGRPCRoute, kindTCPRoute, kindTLSRoute, kindUDPRoute}

// readsRequests is true for the kinds of routes that tell requests apart. The others
// pass connections on unread.
func readsRequests(kind string) bool {
	return slices.Contains([]string{kindHTTPRoute, kindGRPCRoute}, kind)
}
