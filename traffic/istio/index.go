// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// The indexes of the cache. A namespace may hold hundreds of objects of Istio, of which
// a split needs a handful.
const (
	// indexSplit of an object holds short for each split that may have made or changed it.
	indexSplit = "istio.serin.dev/split"
	// indexHost of an object holds the Services that it is for: those with the hosts of a
	// VirtualService within the mesh, or the one that a DestinationRule is about.
	indexHost = "istio.serin.dev/host"
)

// indexer makes the values of one object. It must not fail, whatever the object holds.
type indexer func(*unstructured.Unstructured) []string

var indexers = map[string]indexer{indexSplit: splitsOf, indexHost: hostsOf}

func (i indexer) values(o client.Object) []string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return i(u)
}

// addIndexes has the cache find objects without a look at all of a namespace.
func addIndexes(ctx context.Context, cache client.FieldIndexer, kinds ...schema.GroupVersionKind) error {
	for _, gvk := range kinds {
		for name, index := range indexers {
			if err := cache.IndexField(ctx, empty(gvk, "", ""), name, index.values); err != nil {
				return fmt.Errorf("index %s: %w", gvk.Kind, err)
			}
		}
	}
	return nil
}

// splitsOf finds more than madeFor and holderOf tell: also what only has the name of an
// object that the router makes, and so is in its way.
func splitsOf(u *unstructured.Unstructured) []string {
	var digests []string
	for _, name := range []string{u.GetLabels()[traffic.LabelProxy], holderOf(u)} {
		if name != "" {
			digests = appendNew(digests, short(name))
		}
	}
	if digest := digestInName(u); digest != "" {
		digests = appendNew(digests, digest)
	}
	return digests
}

func hostsOf(u *unstructured.Unstructured) []string {
	spec, _ := u.Object["spec"].(map[string]any)
	hosts := []any{spec["host"]}
	if u.GetKind() == kindVirtualService {
		hosts = meshHosts(spec)
	}
	var services []string
	for _, h := range hosts {
		if host, ok := parseHost(text(h), u.GetNamespace()); ok {
			services = appendNew(services, host.service)
		}
	}
	return services
}
