// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// Cache is what routers read from: the manager's cache itself, since a manager's client
// reads objects without a Go type past it.
type Cache interface {
	client.Reader
	client.FieldIndexer
}

// Objects reads and writes objects as JSON. What is read is shared with the cache and must
// not be changed.
type Objects struct {
	Reader client.Reader
	Writer client.Writer
}

// Index is one index of the cache. Values must not fail, whatever the object holds: it
// runs where every event of the kind passes.
type Index struct {
	Kind   schema.GroupVersionKind
	Name   string
	Values client.IndexerFunc
}

// AddIndexes has the cache find objects without a look at all of a namespace.
func AddIndexes(ctx context.Context, cache client.FieldIndexer, indexes []Index) error {
	for _, i := range indexes {
		if err := cache.IndexField(ctx, Empty(i.Kind, "", ""), i.Name, i.Values); err != nil {
			return fmt.Errorf("index %s: %w", i.Kind.Kind, err)
		}
	}
	return nil
}

// Empty is an object without a spec.
func Empty(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// Get reads an object; nil when there is none.
func (o Objects) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	u := Empty(gvk, namespace, name)
	err := o.Reader.Get(ctx, client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", gvk.Kind, name, err)
	}
	return u, nil
}

// List reads the objects of a kind in a namespace that have a value of an index, by name:
// the cache has them in any order, and what is said of them must not change with it.
func (o Objects) List(ctx context.Context, gvk schema.GroupVersionKind, namespace, index, value string) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := o.Reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", gvk.Kind, err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list.Items, nil
}

// Observed reads an object again that was observed; nil when there was none. It is a
// conflict when the object is no longer the one that was observed: it is gone, there is one
// where none was, or another client wrote it.
func (o Objects) Observed(ctx context.Context, namespace string, object traffic.Object) (*unstructured.Unstructured, error) {
	live, err := o.Get(ctx, object.GroupVersionKind, namespace, object.Name)
	if err != nil {
		return nil, err
	}
	var uid types.UID
	var version string
	if live != nil {
		uid, version = live.GetUID(), live.GetResourceVersion()
	}
	if uid != object.UID || version != object.ResourceVersion {
		resource := schema.GroupResource{Group: object.Group, Resource: object.Kind}
		return nil, apierrors.NewConflict(resource, object.Name, errors.New("it changed since it was observed"))
	}
	return live, nil
}

// Patch writes the difference and nothing else, if the object is still the one that was
// read. A field that the cluster's schema does not know is an error: to drop it would change
// what a route means.
func (o Objects) Patch(ctx context.Context, live, changed *unstructured.Unstructured) error {
	return o.Writer.Patch(ctx, changed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(traffic.FieldManager), client.FieldValidation("Strict"), client.DisableReadYourWritesConsistency)
}

// ApplyOwn makes an object of the router's own for a split, or gives it the spec that is
// wanted and nothing else. That is no server-side apply: one would leave what another writer
// added to the object, such as a hostname.
func (o Objects) ApplyOwn(ctx context.Context, target traffic.Target, object traffic.Object, spec map[string]any) error {
	live, err := o.Observed(ctx, target.Split.Namespace, object)
	if err != nil {
		return err
	}
	changed := Empty(object.GroupVersionKind, target.Split.Namespace, object.Name)
	if live != nil {
		changed = live.DeepCopy()
	}
	labels := changed.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, Labels(target.Split.Name))
	changed.SetLabels(labels)
	changed.Object["spec"] = runtime.DeepCopyJSON(spec)
	if live == nil {
		return o.Writer.Create(ctx, changed, client.FieldOwner(traffic.FieldManager), client.FieldValidation("Strict"), client.DisableReadYourWritesConsistency)
	}
	return o.Patch(ctx, live, changed)
}
