// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// index is one index of the cache. Its function must not fail, whatever the object holds:
// it runs where every event of the kind passes.
type index struct {
	kind   schema.GroupVersionKind
	name   string
	values client.IndexerFunc
}

// indexes are those of the kinds that are served.
func (r *Router) indexes() []index {
	var all []index
	for _, gvk := range r.routes() {
		all = append(all, index{gvk, indexSplit, splitOf}, index{gvk, indexParents, parentsOf})
	}
	if policy, served := r.options.Served.Kinds[kindTLSPolicy]; served {
		all = append(all, index{policy, indexTargets, targetsOf})
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
