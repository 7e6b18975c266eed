// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// A split concerns the Services that it names, and the others that select all pods of its
// root Service: they would get the proxies as endpoints. To find those, and to find the
// splits of the root Services whose pods a Service selects, without a look at every Service
// of a namespace, Services are indexed by selectors as a whole:
//
//	Service "web", selector app=web,tier=front    selects  app=web,tier=front
//	                                              carries  app=web,tier=front · app=web · tier=front
//	Service "all", selector tier=front            selects  tier=front
//
// "all" selects all pods of "web", since it selects what "web" carries.
const (
	// indexSelects of a Service is its selector.
	indexSelects = "trafficsplit.serin.dev/selects"
	// indexCarries of a Service are all selectors that select every pod that it
	// declares, or manyKeys.
	indexCarries = "trafficsplit.serin.dev/carries"
)

// maxKeys is the most keys of a selector whose parts are indexed: n keys have 2ⁿ-1
// parts. Services with more, of which there are few, are compared one by one.
const maxKeys = 4

// manyKeys is what a Service with more than maxKeys keys carries in the index. It is
// not the text of any selector.
const manyKeys = "*"

func selectsIndex(o client.Object) []string {
	service, ok := o.(*corev1.Service)
	if !ok || len(service.Spec.Selector) == 0 {
		return nil
	}
	return []string{labels.Set(service.Spec.Selector).String()}
}

func carriesIndex(o client.Object) []string {
	service, ok := o.(*corev1.Service)
	if !ok {
		return nil
	}
	declared := traffic.DeclaredSelector(service)
	if len(declared) > maxKeys {
		return []string{manyKeys}
	}
	return parts(declared)
}

// parts are the texts of all selectors that are a part of a selector, itself included
// and the empty one, which selects nothing, left out.
func parts(selector map[string]string) []string {
	keys := slices.Sorted(maps.Keys(selector))
	texts := make([]string, 0, 1<<len(keys)-1)
	for chosen := 1; chosen < 1<<len(keys); chosen++ {
		part := make(labels.Set, len(keys))
		for i, key := range keys {
			if chosen&(1<<i) != 0 {
				part[key] = selector[key]
			}
		}
		texts = append(texts, part.String())
	}
	return texts
}

// named are the Services that a split names, each once. The default backend counts
// for a split of all requests too: a router that works by routes keeps the requests
// to it that pass no route.
func named(split *splitv1.TrafficSplit) []string {
	names := traffic.ServiceNames(split)
	if name := traffic.DefaultBackend(split); name != "" {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// services are those that concern a split, by name. They are shared with the cache and
// must not be changed.
func (r *Reconciler) services(ctx context.Context, split *splitv1.TrafficSplit) (map[string]*corev1.Service, error) {
	services := map[string]*corev1.Service{}
	for _, name := range named(split) {
		service := &corev1.Service{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: split.Namespace, Name: name}, service, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read Service %q: %w", name, err)
		}
		services[name] = service
	}
	name, err := traffic.RootName(split)
	if err != nil || services[name] == nil {
		return services, nil //nolint:nilerr // it has no root Service, which Resolve reports
	}
	return services, r.addSelecting(ctx, services[name], services)
}

// addSelecting adds the other Services that select all pods of a root Service.
func (r *Reconciler) addSelecting(ctx context.Context, root *corev1.Service, services map[string]*corev1.Service) error {
	declared := traffic.DeclaredSelector(root)
	lookups := [][]client.ListOption{nil}
	if len(declared) <= maxKeys {
		lookups = nil
		for _, part := range parts(declared) {
			lookups = append(lookups, []client.ListOption{client.MatchingFields{indexSelects: part}})
		}
	}
	for _, options := range lookups {
		found, err := r.listServices(ctx, root.Namespace, options...)
		if err != nil {
			return err
		}
		for i := range found {
			if selectsPodsOf(&found[i], root) {
				services[found[i].Name] = &found[i]
			}
		}
	}
	return nil
}

// rootsSelectedBy are the names of the other Services all of whose pods a Service selects.
func (r *Reconciler) rootsSelectedBy(ctx context.Context, service *corev1.Service) ([]string, error) {
	var roots []string
	if len(service.Spec.Selector) == 0 {
		return nil, nil
	}
	for _, carried := range []string{labels.Set(service.Spec.Selector).String(), manyKeys} {
		found, err := r.listServices(ctx, service.Namespace, client.MatchingFields{indexCarries: carried})
		if err != nil {
			return nil, err
		}
		for i := range found {
			if selectsPodsOf(service, &found[i]) {
				roots = append(roots, found[i].Name)
			}
		}
	}
	return roots, nil
}

func selectsPodsOf(service, root *corev1.Service) bool {
	return service.Name != root.Name && len(service.Spec.Selector) > 0 &&
		labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(traffic.DeclaredSelector(root)))
}

func (r *Reconciler) listServices(ctx context.Context, namespace string, options ...client.ListOption) ([]corev1.Service, error) {
	var list corev1.ServiceList
	options = append(options, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err := r.Client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	return list.Items, nil
}
