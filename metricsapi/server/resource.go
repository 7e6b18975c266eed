// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// Objects are what the cluster has. observe.Inventory is one.
type Objects interface {
	// Names returns the objects of a kind in a namespace ("" = all) whose labels match.
	Names(kind observe.Kind, namespace string, selector labels.Selector) []types.NamespacedName
	// Exists is whether there is such an object.
	Exists(kind observe.Kind, name types.NamespacedName) bool
}

// resource answers get and list for one kind.
type resource struct {
	tables
	kind     observe.Kind
	provider observe.Provider
	objects  Objects
}

var (
	_ rest.Getter               = (*resource)(nil)
	_ rest.Lister               = (*resource)(nil)
	_ rest.Scoper               = (*resource)(nil)
	_ rest.SingularNameProvider = (*resource)(nil)
)

// New returns what a single resource is answered with.
func (r *resource) New() runtime.Object { return &metricsv1.TrafficMetrics{} }

// NewList returns what a list is answered with.
func (r *resource) NewList() runtime.Object { return &metricsv1.TrafficMetricsList{} }

// Destroy has nothing to do.
func (r *resource) Destroy() {}

// NamespaceScoped is whether the objects are in namespaces.
func (r *resource) NamespaceScoped() bool { return r.kind.Namespaced }

// GetSingularName returns the name of one of them.
func (r *resource) GetSingularName() string { return strings.ToLower(r.kind.Kind) }

// Get returns the traffic of one resource: a TrafficMetrics, and for a TrafficSplit,
// which has one for each backend, a TrafficMetricsList of them.
func (r *resource) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	asked := r.request(ctx, name)
	answer, err := r.ask(ctx, r.provider.Metrics, asked)
	if err != nil {
		return nil, err
	}
	switch {
	case len(answer.Items) == 0 && !r.objects.Exists(r.kind, types.NamespacedName{Namespace: asked.Namespace, Name: name}):
		return nil, notFound(r.kind, name)
	case len(answer.Items) == 0:
		return nil, withoutTraffic(r.kind, name)
	case r.kind == observe.TrafficSplits:
		list := r.list(asked)
		list.Items = answer.Items
		return list, nil
	}
	return &answer.Items[0], nil
}

// List returns the traffic of all resources of the kind that are asked for.
func (r *resource) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	if options == nil {
		options = &metainternalversion.ListOptions{}
	}
	name, err := nameIn(options.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	asked := r.request(ctx, "") // a list of one, if anything, is a list
	if options.LabelSelector != nil {
		asked.Selector = options.LabelSelector
	}
	list := r.list(asked)
	if list.Selector, err = shown(asked.Selector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	answer, err := r.ask(ctx, r.provider.Metrics, asked)
	if err != nil {
		return nil, err
	}
	items := only(answer.Items, func(m *metricsv1.TrafficMetrics) bool { return name == "" || m.Resource.Name == name })
	of := identity(asked, "name="+name)
	if list.Items, list.ListMeta, err = cut(items, of, options.Continue, options.Limit); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return list, nil
}

// request is what the path of a request asks for.
func (r *resource) request(ctx context.Context, name string) observe.Request {
	asked := observe.Request{Kind: r.kind, Name: name, Selector: labels.Everything()}
	if r.kind.Namespaced {
		asked.Namespace = request.NamespaceValue(ctx)
	}
	return asked
}

// ask asks the provider, tells what is missing, and completes the items.
func (r *resource) ask(ctx context.Context, of func(context.Context, observe.Request) (observe.Answer, error), asked observe.Request) (observe.Answer, error) {
	answer, err := of(ctx, asked)
	if err != nil {
		return answer, apiError(ctx, r.kind.Resource, err)
	}
	for _, text := range answer.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	for i := range answer.Items {
		complete(&answer.Items[i])
	}
	return answer, nil
}

// list is an empty list of what is asked for.
func (r *resource) list(asked observe.Request) *metricsv1.TrafficMetricsList {
	return &metricsv1.TrafficMetricsList{
		Resource: corev1.ObjectReference{APIVersion: r.kind.APIVersion, Kind: r.kind.Kind, Namespace: asked.Namespace, Name: asked.Name},
		Items:    []metricsv1.TrafficMetrics{},
	}
}

// complete adds what clients expect of objects: a kind, a name, lists that are not null,
// and the {} that stands for any resource.
func complete(m *metricsv1.TrafficMetrics) {
	m.APIVersion, m.Kind = metricsv1.GroupVersion.String(), "TrafficMetrics"
	m.Namespace, m.Name = m.Resource.Namespace, m.Resource.Name
	if m.Edge.Resource == nil {
		m.Edge.Resource = &corev1.ObjectReference{}
	}
	if m.Metrics == nil {
		m.Metrics = []metricsv1.Metric{}
	}
}

// identity names a list, for the tokens of its chunks.
func identity(asked observe.Request, more string) string {
	return strings.Join([]string{asked.Kind.Resource, asked.Namespace, asked.Name, asked.Selector.String(), more}, " ")
}

// only returns the items for which keep is true, never nil.
func only(items []metricsv1.TrafficMetrics, keep func(*metricsv1.TrafficMetrics) bool) []metricsv1.TrafficMetrics {
	kept := make([]metricsv1.TrafficMetrics, 0, len(items))
	for i := range items {
		if keep(&items[i]) {
			kept = append(kept, items[i])
		}
	}
	return kept
}
