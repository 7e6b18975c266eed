// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// ownRoute is a route that the router makes for one port of the root Service. One
// route can't do for several ports: its rules hold for all of its parents alike.
type ownRoute struct {
	kind, name string
	port       traffic.Port
}

// ownRoutes are the routes that a split needs where it names none: those that a mesh
// follows on the way to the root Service.
func ownRoutes(split traffic.Split, root *corev1.Service) []ownRoute {
	if len(split.Routes) > 0 {
		return nil
	}
	own := make([]ownRoute, 0, len(split.Ports))
	for _, port := range split.Ports {
		own = append(own, ownRoute{kind: kindOf(port, root), name: ownName(split.Name, port), port: port})
	}
	return own
}

// ownName is the name of the route for a port.
func ownName(split string, port traffic.Port) string {
	transport := ""
	if port.Protocol == traffic.ProtocolUDP {
		transport = "-udp" // TCP may have the same number
	}
	return fmt.Sprintf("serin-%s-%d%s", split, port.Number, transport)
}

// ownNames are those that ownName makes. The split is in the first group: no other one
// gets the same name.
var ownNames = regexp.MustCompile(`^serin-(.+)-[0-9]+(-udp)?$`)

// makerOf is the split that the router made a route for, or "". A user may have removed
// the label that says so: then the other labels and the name show it.
func makerOf(route client.Object) string {
	if split := route.GetLabels()[traffic.LabelProxy]; split != "" {
		return split
	}
	name := ownNames.FindStringSubmatch(route.GetName())
	if name == nil || !routes.IsOwn(route) {
		return ""
	}
	return name[1]
}

// kindOf is the kind of route that suits what a port speaks.
func kindOf(port traffic.Port, root *corev1.Service) string {
	switch port.Protocol {
	case traffic.ProtocolHTTP:
		return kindHTTPRoute
	case traffic.ProtocolHTTP2:
		if isGRPC(port, root) {
			return kindGRPCRoute
		}
		return kindHTTPRoute
	case traffic.ProtocolUDP:
		return kindUDPRoute
	case traffic.ProtocolTCP, traffic.ProtocolUnsupported:
	}
	return kindTCPRoute
}

// isGRPC is true for a port that says so: by its appProtocol, else by the first word of
// its name.
func isGRPC(port traffic.Port, root *corev1.Service) bool {
	if root == nil {
		return false
	}
	return slices.ContainsFunc(root.Spec.Ports, func(p corev1.ServicePort) bool {
		said, _, _ := strings.Cut(p.Name, "-")
		if p.AppProtocol != nil && *p.AppProtocol != "" {
			said = *p.AppProtocol
		}
		return p.Port == port.Number && p.Name == port.Name && strings.EqualFold(said, "grpc")
	})
}

// spec of the route, with every field that the API server would fill in.
func (o ownRoute) spec(split traffic.Split, schema Schema) (map[string]any, error) {
	rule := map[string]any{fieldBackendRefs: []any{map[string]any{
		"group": "", fieldKind: kindService, fieldName: split.Root, fieldPort: int64(o.port.Number), fieldWeight: int64(1),
	}}}
	if o.kind == kindHTTPRoute {
		rule[fieldMatches] = []any{map[string]any{fieldPath: map[string]any{fieldType: typePrefix, fieldValue: "/"}}}
	}
	rules, err := Render(o.kind, []map[string]any{rule}, split, schema)
	if err != nil {
		return nil, fmt.Errorf("port %d of Service %q: %w", o.port.Number, split.Root, err)
	}
	return map[string]any{
		"parentRefs": []any{map[string]any{"group": "", fieldKind: kindService, fieldName: split.Root, fieldPort: int64(o.port.Number)}},
		"rules":      listOf(fieldsOf(rules)),
	}, nil
}

func fieldsOf(rules []Rule) []map[string]any {
	fields := make([]map[string]any, 0, len(rules))
	for _, rule := range rules {
		fields = append(fields, rule.Fields)
	}
	return fields
}

// equalSpec compares what the router asks for with what a route of its own has. A field
// that is not known here is one that a newer version of the API fills in.
func equalSpec(wanted, live any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		return ok && equalFields(w, l)
	case []any:
		l, ok := live.([]any)
		return ok && slices.EqualFunc(w, l, equalSpec)
	default:
		return wanted == live
	}
}

func equalFields(wanted, live map[string]any) bool {
	for field, value := range live {
		if _, found := wanted[field]; !found && meaningful[field] && !empty(value) {
			return false
		}
	}
	for field, value := range wanted {
		if !equalSpec(value, live[field]) {
			return false
		}
	}
	return true
}

// meaningful are the fields that change what a route does when another writer adds them.
var meaningful = map[string]bool{
	"hostnames": true, "filters": true, "timeouts": true, "retry": true, fieldSessions: true,
	"headers": true, "queryParams": true, "method": true, "matches": true, "namespace": true, "sectionName": true,
}

func empty(value any) bool {
	list, ok := value.([]any)
	return value == nil || ok && len(list) == 0
}

// Names of the indexes of the cache, so that a pass looks at the objects of one split and
// not at those of a whole namespace.
const (
	// indexSplit of a route is the split that it belongs to: the one that made it, or the
	// one whose backends it names.
	indexSplit = "gatewayapi.serin.dev/split"
	// indexParents of a route are the Services whose traffic it leads.
	indexParents = "gatewayapi.serin.dev/parents"
	// indexTargets of a policy are the Services that it is for.
	indexTargets = "gatewayapi.serin.dev/targets"
)

// indexes are those of the kinds that are served.
func (r *Router) indexes() []routes.Index {
	var all []routes.Index
	for _, gvk := range r.served() {
		all = append(all, routes.Index{Kind: gvk, Name: indexSplit, Values: splitOf}, routes.Index{Kind: gvk, Name: indexParents, Values: parentsOf})
	}
	if policy, served := r.options.Served.Kinds[kindTLSPolicy]; served {
		all = append(all, routes.Index{Kind: policy, Name: indexTargets, Values: targetsOf})
	}
	return all
}

// splitOf is the split that a route belongs to.
func splitOf(o client.Object) []string {
	if name := makerOf(o); name != "" {
		return []string{name}
	}
	route, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if name := holderOf(route); name != "" {
		return []string{name}
	}
	return nil
}

// parentsOf are the Services of its own namespace that are parents of a route.
func parentsOf(o client.Object) []string {
	return servicesOf(o, "parentRefs", Group, func(ref map[string]any) bool {
		namespace := text(ref, "namespace")
		return namespace == "" || namespace == o.GetNamespace()
	})
}

// targetsOf are the Services that a policy is for.
func targetsOf(o client.Object) []string {
	return servicesOf(o, "targetRefs", "", func(map[string]any) bool { return true })
}

// servicesOf are the names of the Services that a list of references has. A reference
// without a group means the default one.
func servicesOf(o client.Object, list, defaultGroup string, choose func(ref map[string]any) bool) []string {
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	refs, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", list)
	var names []string
	for _, ref := range objectsOf(refs) {
		if stringOr(ref, "group", defaultGroup) == "" && text(ref, fieldKind) == kindService && choose(ref) {
			names = append(names, text(ref, fieldName))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
