// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/workload"
)

// ErrUnknownAction means that no shell knows the action.
var ErrUnknownAction = errors.New("no such action")

// errChanged means that the cache does not show a change yet.
var errChanged = errors.New("it was changed just now")

// Writer acts on what was observed, in a namespace, as a field manager.
type Writer struct {
	Client    client.Client
	Manager   string
	Namespace string
}

// Apply scales a ReplicaSet, or carries out a deletion. All other actions are the caller's.
func (w Writer) Apply(ctx context.Context, action kit.Action) error {
	switch a := action.(type) {
	case kit.ScaleReplicaSet:
		annotations := map[string]any{workload.AnnotationDesiredReplicas: strconv.Itoa(int(a.Desired)), v1alpha1.AnnotationRejected: nil}
		if a.Rejected != "" {
			annotations[v1alpha1.AnnotationRejected] = a.Rejected
		}
		metadata := map[string]any{"annotations": annotations}
		return w.PatchReplicaSet(ctx, a.Object, metadata, map[string]any{"replicas": a.Replicas})
	case kit.DeleteReplicaSet:
		return w.Delete(ctx, a.Object, &appsv1.ReplicaSet{})
	case kit.DeleteBackend:
		return w.Delete(ctx, a.Object, &corev1.Service{})
	case kit.DeleteSplit:
		return w.Delete(ctx, a.Object, &splitv1.TrafficSplit{})
	}
	return fmt.Errorf("%w: %T", ErrUnknownAction, action)
}

// PatchReplicaSet changes the exact ReplicaSet that was observed.
func (w Writer) PatchReplicaSet(ctx context.Context, o kit.Object, metadata, spec map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = string(o.UID), o.ResourceVersion
	body := map[string]any{"metadata": metadata}
	if spec != nil {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: o.Name}}
	return w.Client.Patch(ctx, rs, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(w.Manager))
}

// HandOver has a Deployment adopt a canary, unless its spec is another than the one that was observed,
// asked past the cache: the write of a ReplicaSet can't name the version of the Deployment. If the scale has
// just changed, the Deployment controller scales both versions in proportion.
func (w Writer) HandOver(ctx context.Context, live client.Reader, to *appsv1.Deployment, action kit.ReleaseCanary) error {
	now := &appsv1.Deployment{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(to), now); err != nil {
		return err
	}
	if now.UID != to.UID || now.Generation != to.Generation {
		return apierrors.NewConflict(appsv1.Resource("deployments"), to.Name, errChanged)
	}
	metadata := map[string]any{"ownerReferences": nil}
	if action.Promotion != "" {
		metadata["labels"] = map[string]string{v1alpha1.LabelPromotion: action.Promotion}
	}
	return w.PatchReplicaSet(ctx, action.Object, metadata, nil)
}

// Delete deletes the exact object that was observed.
func (w Writer) Delete(ctx context.Context, o kit.Object, obj client.Object, more ...client.DeleteOption) error {
	obj.SetNamespace(w.Namespace)
	obj.SetName(o.Name)
	more = append(more, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(w.Client.Delete(ctx, obj, more...))
}

// Create makes an object. One that exists is a conflict: the cache did not show it yet.
func (w Writer) Create(ctx context.Context, obj client.Object) error {
	return StaleIfThere(w.Client.Create(ctx, obj, client.FieldOwner(w.Manager)))
}

// ApplyBackend makes the Service of a version what it has to be, whatever another actor
// added: it is Serin's alone, so the lists are replaced and not merged. live is nil when
// there is none.
func (w Writer) ApplyBackend(ctx context.Context, live, want *corev1.Service) error {
	if live == nil {
		return w.Create(ctx, want)
	}
	next := live.DeepCopy()
	next.Labels, next.Annotations = With(next.Labels, want.Labels), With(next.Annotations, want.Annotations)
	next.Spec.Selector, next.Spec.Ports = want.Spec.Selector, want.Spec.Ports
	next.Spec.TrafficDistribution, next.Spec.InternalTrafficPolicy = want.Spec.TrafficDistribution, want.Spec.InternalTrafficPolicy
	return w.Client.Update(ctx, next, client.FieldOwner(w.Manager))
}

// PatchDifference writes the difference to the version of an object that was observed and nothing
// else, if it is still that. The cache leaves kubectl's annotation out, which the object may have: a patch from
// some annotations to none would remove it too, so both sides have one more that stays.
func (w Writer) PatchDifference(ctx context.Context, seen, changed client.Object) error {
	base := seen.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is a copy of one
	for _, object := range []client.Object{base, changed} {
		object.SetAnnotations(With(map[string]string{corev1.LastAppliedConfigAnnotation: ""}, object.GetAnnotations()))
	}
	return w.Client.Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(w.Manager))
}

// SetFinalizer adds a finalizer to the version of an object that was observed, or removes
// it.
func (w Writer) SetFinalizer(ctx context.Context, seen client.Object, finalizer string, action kit.Action) error {
	next, _ := seen.DeepCopyObject().(client.Object)
	change := controllerutil.AddFinalizer
	if _, remove := action.(kit.RemoveFinalizer); remove {
		change = controllerutil.RemoveFinalizer
	}
	if !change(next, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(w.Client.Patch(ctx, next, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})))
}

// With is a map with more in it.
func With(m, more map[string]string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}

// StaleIfThere turns "already exists" into a conflict.
func StaleIfThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(splitv1.GroupVersion.WithResource("trafficsplits").GroupResource(), "", err)
	}
	return err
}

// ConflictPause lets the cache see what another actor wrote meanwhile.
const ConflictPause = 100 * time.Millisecond

// Retry tries again soon after a conflict, and with growing pauses after any other error.
func Retry(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: ConflictPause}, nil
	}
	return reconcile.Result{}, err
}
