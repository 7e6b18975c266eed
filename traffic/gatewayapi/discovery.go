// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
)

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

// readsRequests is true for the kinds of routes that distinguish requests. The others
// pass connections on unread.
func readsRequests(kind string) bool {
	return slices.Contains([]string{kindHTTPRoute, kindGRPCRoute}, kind)
}

// Served is what a cluster serves of the Gateway API.
type Served struct {
	// Kinds that are served, in the version that is used, by name.
	Kinds map[string]schema.GroupVersionKind
	// Schema is what routes can say.
	Schema Schema
}

// WithoutClasses is the same without the kind that belongs to no namespace, for an operator
// that may not read it.
func (s Served) WithoutClasses() Served {
	s.Kinds = maps.Clone(s.Kinds)
	delete(s.Kinds, kindGatewayClass)
	return s
}

// Discover asks the cluster what it serves. What is installed later is found when the
// operator starts the next time.
func Discover(mapper meta.RESTMapper, documents openapi.Client) (Served, error) {
	served := Served{Kinds: map[string]schema.GroupVersionKind{}}
	for kind, versions := range routeVersions {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: Group, Kind: kind}, versions...)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return Served{}, fmt.Errorf("ask whether the cluster serves %s: %w", kind, err)
		}
		served.Kinds[kind] = mapping.GroupVersionKind
	}
	route, found := served.Kinds[kindHTTPRoute]
	if !found {
		return served, nil
	}
	var err error
	served.Schema, err = readSchema(documents, route.GroupVersion())
	return served, err
}

// readSchema looks into the schema that the cluster publishes.
func readSchema(documents openapi.Client, version schema.GroupVersion) (Schema, error) {
	paths, err := documents.Paths()
	if err != nil {
		return Schema{}, fmt.Errorf("list the schemas of the cluster: %w", err)
	}
	document, found := paths["apis/"+version.String()]
	if !found {
		return Schema{}, nil
	}
	encoded, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return Schema{}, fmt.Errorf("read the schema of %s: %w", version, err)
	}
	return schemaOf(encoded)
}

// schemaOf finds in an OpenAPI document what routes can say.
func schemaOf(encoded []byte) (Schema, error) {
	var document struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(encoded, &document); err != nil {
		return Schema{}, fmt.Errorf("read the schema of routes: %w", err)
	}
	schema := Schema{Sessions: map[string]bool{}}
	for name, s := range document.Components.Schemas {
		kind := name[strings.LastIndex(name, ".")+1:]
		if !readsRequests(kind) {
			continue
		}
		schema.Sessions[kind] = property(s, "spec", "rules", fieldSessions) != nil
		if kind == kindHTTPRoute {
			mirror := property(s, "spec", "rules", fieldFilters, "requestMirror")
			schema.MirrorPercent = property(mirror, "percent") != nil
		}
	}
	return schema, nil
}

// property is the schema of a field, through lists. It is nil when there is none.
func property(s map[string]any, path ...string) map[string]any {
	for _, field := range path {
		properties, _ := s["properties"].(map[string]any)
		s, _ = properties[field].(map[string]any)
		if items, ok := s["items"].(map[string]any); ok {
			s = items
		}
	}
	return s
}
