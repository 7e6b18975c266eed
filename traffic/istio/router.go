// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// DefaultSettle is how long Istio's proxies are given to follow a VirtualService.
// istiod gathers changes for 0.1 s to 10 s before it sends them.
const DefaultSettle = 10 * time.Second

// Options of the router.
type Options struct {
	// Cache holds the namespaces' objects without a type: the manager's cache itself, since
	// a manager's client reads them past it.
	Cache Cache
	// Client writes.
	Client client.Client
	// Mapper says which versions of Istio's kinds the cluster serves.
	Mapper meta.RESTMapper
	// Default is true when splits that name no router are this one's. Of others' splits
	// it looks for nothing but what it left.
	Default bool
	// Settle is how long proxies may go on to serve what was before. Default DefaultSettle.
	Settle time.Duration
}

// Cache is what the router reads from.
type Cache interface {
	client.Reader
	client.FieldIndexer
}

// Router leads traffic by Istio's VirtualServices. It implements traffic.Router.
type Router struct {
	kinds   kinds
	options Options
}

var (
	_ traffic.Router           = (*Router)(nil)
	_ traffic.NamespaceWatcher = (*Router)(nil)
)

// New makes a Router. In a cluster without Istio it refuses every split; Istio that is
// installed later is found when the operator starts again.
func New(ctx context.Context, options Options) (*Router, error) {
	if options.Settle == 0 {
		options.Settle = DefaultSettle
	}
	served, err := servedKinds(options.Mapper)
	if err != nil {
		return nil, err
	}
	r := &Router{kinds: served, options: options}
	if err := addIndexes(ctx, options.Cache, r.Kinds()...); err != nil {
		return nil, err
	}
	return r, nil
}

// servedKinds finds the best version in which the cluster has both kinds.
func servedKinds(mapper meta.RESTMapper) (kinds, error) {
	for _, version := range versions {
		found := 0
		for _, kind := range []string{kindVirtualService, kindRule} {
			_, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, version)
			if err == nil {
				found++
			} else if !meta.IsNoMatchError(err) {
				return kinds{}, fmt.Errorf("ask whether the cluster serves %s: %w", kind, err)
			}
		}
		if found == 2 {
			return kinds{version: version}, nil
		}
	}
	return kinds{}, nil
}

// Name implements traffic.Router.
func (r *Router) Name() string { return Name }

// Means implements traffic.Router.
func (r *Router) Means() traffic.Means { return traffic.MeansRoutes }

// Kinds implements traffic.Router.
func (r *Router) Kinds() []schema.GroupVersionKind {
	if !r.kinds.served() {
		return nil
	}
	return []schema.GroupVersionKind{r.kinds.routes(), r.kinds.rules()}
}

// NamespaceKinds implements traffic.NamespaceWatcher: a rule of the root Service is copied, and
// a VirtualService of a user may have its host.
func (r *Router) NamespaceKinds() []schema.GroupVersionKind { return r.Kinds() }

// Observe implements traffic.Router.
func (r *Router) Observe(ctx context.Context, target traffic.Target) (traffic.State, error) {
	state := traffic.State{Settle: r.options.Settle}
	if !r.kinds.served() {
		return state, nil
	}
	w, err := r.world(ctx, target)
	if err != nil {
		return traffic.State{}, err
	}
	found := w.find(target)
	for _, i := range found.items {
		state.Objects = append(state.Objects, i.Object)
	}
	for _, refusal := range found.refusals {
		state.Problems = append(state.Problems, traffic.Problem{Condition: splitv1.ConditionAccepted, Reason: splitv1.ReasonUnsupported, Message: refusal})
	}
	return state, nil
}

// Apply implements traffic.Router.
func (r *Router) Apply(ctx context.Context, target traffic.Target, object traffic.Object) error {
	w, err := r.world(ctx, target)
	if err != nil {
		return err
	}
	for _, i := range w.find(target).items {
		if i.Kind != object.Kind || i.Name != object.Name {
			continue
		}
		if err := unchanged(i.live, object); err != nil {
			return err
		}
		switch {
		case i.spec == nil: // refused, or not needed
			continue
		case i.Patched:
			return r.patch(ctx, target.Split.Namespace, object, i.spec, map[string]any{
				traffic.AnnotationSplit: target.Split.Name, annotationOriginal: i.record,
			})
		case object.ResourceVersion == "":
			return r.create(ctx, target, i)
		default:
			return r.update(ctx, target, object, i)
		}
	}
	return fmt.Errorf("router %s wants nothing of %s %q", Name, object.Kind, object.Name)
}

// Restore implements traffic.Router.
func (r *Router) Restore(ctx context.Context, target traffic.Target, object traffic.Object) error {
	w, err := r.world(ctx, target)
	if err != nil {
		return err
	}
	if object.Kind != kindVirtualService {
		return fmt.Errorf("router %s has not changed %s %q", Name, object.Kind, object.Name)
	}
	u := byName(w.routes, object.Name)
	if err := unchanged(u, object); err != nil {
		return err
	}
	return r.patch(ctx, target.Split.Namespace, object, originalOf(u, target.Split), map[string]any{traffic.AnnotationSplit: nil, annotationOriginal: nil})
}

// unchanged is a conflict when an object is no longer the one that was observed: it is
// gone, there is one where none was, or another client wrote it.
func unchanged(live *unstructured.Unstructured, object traffic.Object) error {
	var uid types.UID
	var version string
	if live != nil {
		uid, version = live.GetUID(), live.GetResourceVersion()
	}
	if uid == object.UID && version == object.ResourceVersion {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Group: object.Group, Resource: object.Kind}, object.Name, errors.New("it changed since it was observed"))
}

// patch replaces the lists of routes of a patched object, and the annotations, if it
// still is the one that was observed. A field that the cluster's schema does not know
// is an error: to drop it would change what the routes mean.
func (r *Router) patch(ctx context.Context, namespace string, object traffic.Object, spec, annotations map[string]any) error {
	lists := map[string]any{}
	for _, section := range sections {
		if list, found := spec[section]; found {
			lists[section] = list
		}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": object.UID, "resourceVersion": object.ResourceVersion, "annotations": annotations},
		"spec":     lists,
	})
	if err != nil {
		return fmt.Errorf("encode the routes: %w", err)
	}
	u := empty(object.GroupVersionKind, namespace, object.Name)
	return r.options.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, body),
		client.FieldOwner(fieldManager), client.FieldValidation("Strict"), client.DisableReadYourWritesConsistency)
}

func (r *Router) create(ctx context.Context, target traffic.Target, i item) error {
	u := empty(i.GroupVersionKind, target.Split.Namespace, i.Name)
	u.SetLabels(ownLabels(target.Split.Name))
	u.Object["spec"] = runtime.DeepCopyJSONValue(i.spec)
	return r.options.Client.Create(ctx, u, client.FieldOwner(fieldManager), client.FieldValidation("Strict"), client.DisableReadYourWritesConsistency)
}

// update writes the whole spec, so that nothing of what another writer added stays.
func (r *Router) update(ctx context.Context, target traffic.Target, object traffic.Object, i item) error {
	u := i.live.DeepCopy()
	u.SetUID(object.UID)
	u.SetResourceVersion(object.ResourceVersion)
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ownLabels(target.Split.Name))
	u.SetLabels(labels)
	u.Object["spec"] = runtime.DeepCopyJSONValue(i.spec)
	return r.options.Client.Update(ctx, u, client.FieldOwner(fieldManager), client.FieldValidation("Strict"), client.DisableReadYourWritesConsistency)
}

func empty(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
