// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/kit/tracing"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/controllers/trafficsplit/plan"
	"github.com/serin-dev/serin/traffic"
)

// act carries the actions out in order and stops at the first that fails.
func (r *Reconciler) act(ctx context.Context, o *observation, actions []kit.Action) error {
	for _, action := range actions {
		if err := tracing.Act(ctx, action, func(ctx context.Context) error { return r.apply(ctx, o, action) }); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		log.FromContext(ctx).Info(action.String(), "TrafficSplit", klog.KObj(o.Split))
	}
	return nil
}

func (r *Reconciler) apply(ctx context.Context, o *observation, action kit.Action) error {
	switch a := action.(type) {
	case kit.AddFinalizer:
		return r.writer(o.Split.Namespace).SetFinalizer(ctx, o.Split, traffic.Finalizer, action)
	case kit.RemoveFinalizer:
		return r.release(ctx, o.Split)
	case plan.Apply:
		return o.router.Apply(ctx, o.target, a.Object)
	case plan.Restore:
		return o.router.Restore(ctx, o.target, a.Object)
	case plan.Delete:
		return r.remove(ctx, o.Split.Namespace, a.Object)
	case plan.Drain:
		return r.drain(ctx, o)
	case plan.AddEndpoints:
		return r.endpoints().Lead(ctx, o.Root.Service, o.Split.Name)
	}
	return r.applyRoot(ctx, o, action)
}

// release removes the finalizer, once.
func (r *Reconciler) release(ctx context.Context, split *splitv1.TrafficSplit) error {
	if !controllerutil.ContainsFinalizer(split, traffic.Finalizer) {
		return nil
	}
	before := versionOf(split)
	if err := r.writer(split.Namespace).SetFinalizer(ctx, split, traffic.Finalizer, kit.RemoveFinalizer{}); err != nil {
		return err
	}
	r.replaced.note(client.ObjectKeyFromObject(split), before)
	return nil
}

// applyRoot changes the root Service.
func (r *Reconciler) applyRoot(ctx context.Context, o *observation, action kit.Action) error {
	root, pin := o.Root.Service, traffic.Pin{Split: o.Split.Name}
	switch action.(type) {
	case plan.CutOver:
		return r.cutOver(ctx, root, o.Split.Name)
	case plan.PinRoot:
		pin.Keys = o.Pin.Keys
		return r.pin(ctx, root, pin)
	case plan.UnpinRoot:
		return r.pin(ctx, root, pin)
	case plan.RestoreRoot:
		pin.Keys = o.PinNext()
		return r.restoreRoot(ctx, root, pin)
	}
	return fmt.Errorf("%w: %T", shell.ErrUnknownAction, action)
}

// endpoints keeps the EndpointSlices of proxies.
func (r *Reconciler) endpoints() *endpoints.Reconciler {
	return &endpoints.Reconciler{Client: r.Client, Live: r.Live, FieldOwner: traffic.FieldManager, PodZones: r.Options.PodZones}
}

func (r *Reconciler) writer(namespace string) shell.Writer {
	return shell.Writer{Client: r.Client, Manager: traffic.FieldManager, Namespace: namespace}
}

// cutOver adds the proxies' key to what the root Service selects by, and
// records in the same write what its owner declares.
func (r *Reconciler) cutOver(ctx context.Context, root *corev1.Service, split string) error {
	declared, err := json.Marshal(traffic.DeclaredSelector(root))
	if err != nil {
		return fmt.Errorf("record the selector: %w", err)
	}
	changed := root.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, plan.AnnotationOriginalSelector, string(declared))
	// No pod of the app has the key, so none of a version's is needed beside it.
	if err := traffic.SetPin(changed, traffic.Pin{}); err != nil {
		return err
	}
	changed.Spec.Selector[traffic.LabelProxy] = split
	return r.writer(root.Namespace).PatchDifference(ctx, root, changed)
}

// restoreRoot removes just the keys and the records, but for the pin that is to be in
// force from now on. Whatever else the selector holds by now is its owner's.
func (r *Reconciler) restoreRoot(ctx context.Context, root *corev1.Service, pin traffic.Pin) error {
	changed := root.DeepCopy()
	delete(changed.Annotations, plan.AnnotationOriginalSelector)
	delete(changed.Spec.Selector, traffic.LabelProxy)
	if err := traffic.SetPin(changed, pin); err != nil {
		return err
	}
	return r.writer(root.Namespace).PatchDifference(ctx, root, changed)
}

// pin replaces the keys by which the root Service is narrowed to a backend.
func (r *Reconciler) pin(ctx context.Context, root *corev1.Service, pin traffic.Pin) error {
	changed := root.DeepCopy()
	if err := traffic.SetPin(changed, pin); err != nil {
		return err
	}
	return r.writer(root.Namespace).PatchDifference(ctx, root, changed)
}

// remove deletes exactly the object that was observed, which is in the namespace unless it
// names another one. One that splits share is deleted once, whichever of them comes first.
func (r *Reconciler) remove(ctx context.Context, namespace string, object traffic.Object) error {
	namespace = cmp.Or(object.Namespace, namespace)
	if !object.Shared || object.UID == "" {
		return r.delete(ctx, namespace, object)
	}
	key, version := sharedVersion(namespace, object)
	if !r.deleted.note(key, version) {
		return nil // also while the request is on its way
	}
	err := r.delete(ctx, namespace, object)
	if err != nil {
		r.deleted.note(key, "")
	}
	return err
}

// isDeleted reports whether this process deleted an object that splits share.
func (r *Reconciler) isDeleted(namespace string, object traffic.Object) bool {
	key, version := sharedVersion(namespace, object)
	return r.deleted.of(key) == version
}

// sharedVersion is what r.deleted keeps of an object that splits share.
func sharedVersion(namespace string, object traffic.Object) (types.NamespacedName, string) {
	return types.NamespacedName{Namespace: namespace, Name: object.Kind + "/" + object.Name}, string(object.UID) + " " + object.ResourceVersion
}

// delete does so as the cache watches the kind: to wait for the deletion in another form, it would
// have to watch the kind a second time.
func (r *Reconciler) delete(ctx context.Context, namespace string, object traffic.Object) error {
	live, err := objectOf(r.Client.Scheme(), object.GroupVersionKind)
	if err != nil {
		return fmt.Errorf("delete a %s: %w", object.Kind, err)
	}
	return r.writer(namespace).Delete(ctx, kit.Object{Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}, live)
}

// identity is a split's name with the UID and resourceVersion that a write of it
// requires, in the version that the cluster serves.
func (r *Reconciler) identity(split *splitv1.TrafficSplit) (*unstructured.Unstructured, error) {
	gvk, err := r.Client.GroupVersionKindFor(split)
	if err != nil {
		return nil, fmt.Errorf("find the version of TrafficSplits: %w", err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(split.Namespace)
	u.SetName(split.Name)
	u.SetUID(split.UID)
	u.SetResourceVersion(split.ResourceVersion)
	return u, nil
}
