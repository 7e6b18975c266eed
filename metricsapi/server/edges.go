// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// edgesOf answers get for the sub-resource edges of one kind. There is no list of it.
type edgesOf struct {
	tables
	resource *resource
}

var _ rest.GetterWithOptions = edgesOf{}

// New returns what a request is answered with.
func (e edgesOf) New() runtime.Object { return &metricsv1.TrafficMetricsList{} }

// Destroy has nothing to do.
func (e edgesOf) Destroy() {}

// NewGetOptions are those of a list: selector and chunks.
func (e edgesOf) NewGetOptions() (runtime.Object, bool, string) {
	return &metav1.ListOptions{}, false, ""
}

// Get returns an item for each edge of a resource. A selector limits them to those whose
// other end is an object with such labels.
func (e edgesOf) Get(ctx context.Context, name string, o runtime.Object) (runtime.Object, error) {
	options, ok := o.(*metav1.ListOptions)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unexpected options %T", o))
	}
	if options.FieldSelector != "" {
		return nil, apierrors.NewBadRequest("fieldSelector: not supported for edges; use a labelSelector")
	}
	asked := e.resource.request(ctx, name)
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	list := e.resource.list(asked)
	if list.Selector, err = shown(selector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	answer, err := e.resource.ask(ctx, e.resource.provider.Edges, asked)
	if err != nil {
		return nil, err
	}
	if len(answer.Items) == 0 && !e.resource.objects.Exists(e.resource.kind, types.NamespacedName{Namespace: asked.Namespace, Name: name}) {
		return nil, notFound(e.resource.kind, name)
	}
	items := e.selected(answer.Items, selector)
	if list.Items, list.ListMeta, err = cut(items, identity(asked, "edges "+selector.String()), options.Continue, options.Limit); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return list, nil
}

// selected are the edges whose other end has labels that match.
func (e edgesOf) selected(items []metricsv1.TrafficMetrics, selector labels.Selector) []metricsv1.TrafficMetrics {
	if selector.Empty() {
		return only(items, func(*metricsv1.TrafficMetrics) bool { return true })
	}
	matching := map[string]sets.Set[types.NamespacedName]{}
	return only(items, func(m *metricsv1.TrafficMetrics) bool {
		other := m.Edge.Resource
		names, known := matching[other.Kind]
		if !known {
			names = e.matching(other.Kind, selector)
			matching[other.Kind] = names
		}
		return names.Has(types.NamespacedName{Namespace: other.Namespace, Name: other.Name})
	})
}

// matching are the objects of a kind that have such labels.
func (e edgesOf) matching(kind string, selector labels.Selector) sets.Set[types.NamespacedName] {
	for _, k := range observe.Kinds {
		if k.Kind == kind {
			return sets.New(e.resource.objects.Names(k, "", selector)...)
		}
	}
	return nil
}
