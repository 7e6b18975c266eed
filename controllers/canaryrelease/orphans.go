// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

// annotationRelease is where Helm says of which release an object is.
const annotationRelease = "meta.helm.sh/release-name"

// restoreOrphans removes what is left of a CanaryRelease that is gone, when a user removed
// its finalizer. It is done as when the CanaryRelease is deleted, by one with what can be
// seen of the one that is gone. Now is the one that has its name by now; nil for none. It
// reports whether there was anything to do.
func (r *Reconciler) restoreOrphans(ctx context.Context, key types.NamespacedName, now *v1alpha1.CanaryRelease) (again reconcile.Result, found bool, err error) {
	gone, err := r.remains(ctx, key, now)
	if err != nil {
		return again, now == nil, fmt.Errorf("look for what is left of the CanaryRelease: %w", err) // one that is there reports it
	}
	if gone == nil {
		return again, false, nil
	}
	if is, err := shell.MayBeThere(ctx, r.options.Live, gone, &v1alpha1.CanaryRelease{}, now != nil); is {
		return again, true, err // the cache will show it or its successor, or it is not known
	}
	k := r.helm.of(gone)
	if r.forgetTraffic(key.Namespace, k); k.orphaned.IsZero() {
		k.orphaned = r.options.Clock.Now()
	}
	gone.DeletionTimestamp = &metav1.Time{Time: k.orphaned}
	var denied bool
	if gone.Status.Copies, denied, err = r.leftCopies(ctx, gone); err != nil {
		return again, true, err
	}
	s, failed := r.observe(ctx, gone)
	if now != nil {
		s.leaveHolds()
	}
	d := helmrelease.Decide(s.Observation)
	over, err := r.restore(ctx, s, d.Actions, now, denied)
	if err != nil {
		again, err = shell.Retry(err)
		return again, true, err
	}
	if over {
		return again, false, nil
	}
	r.warn(ctx, s, d.Events)
	if now != nil && isNew(now) {
		failed = errors.Join(failed, r.reportRemoval(ctx, now, d))
	}
	return reconcile.Result{RequeueAfter: sooner(d)}, true, failed
}

// restore does what was decided about one that is gone, and reports whether that was all. Denied is
// whether it is not known which copies are left.
func (r *Reconciler) restore(ctx context.Context, s observation, actions []kit.Action, now *v1alpha1.CanaryRelease, denied bool) (over bool, err error) {
	gone := s.CanaryRelease
	for _, a := range actions {
		if _, hold := a.(helmrelease.SetHold); hold && now != nil {
			continue
		}
		if _, last := a.(kit.RemoveFinalizer); last {
			key := client.ObjectKeyFromObject(gone)
			r.helm.forget(key)
			if now != nil && !denied { // what could not be removed stays; what could not be listed may come
				r.helm.setSearched(key, now.UID)
			}
			return true, nil
		}
		log.FromContext(ctx).Info(a.String(), "CanaryRelease", klog.KObj(gone), "reason", "it is gone")
		if err := r.apply(ctx, s, a); err != nil {
			return false, fmt.Errorf("%s: %w", a, err)
		}
	}
	return false, nil
}

// warn announces the warnings about one that is gone, which can't say them itself.
func (r *Reconciler) warn(ctx context.Context, s observation, events []kit.Event) {
	for _, e := range events {
		if e.Warning {
			r.reporter().Announce(ctx, s.concerned(), e)
		}
	}
}

// reportRemoval has a CanaryRelease say what it waits for.
func (r *Reconciler) reportRemoval(ctx context.Context, now *v1alpha1.CanaryRelease, d helmrelease.Decision) error {
	why := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady).Message
	c := kit.Condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonCleaningUp, "What an earlier CanaryRelease of the name left is removed first. "+why)
	c.ObservedGeneration, c.LastTransitionTime = now.Generation, metav1.NewTime(r.options.Clock.Now())
	next := now.DeepCopy()
	if !meta.SetStatusCondition(&next.Status.Conditions, c) {
		return nil
	}
	if err := r.client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// leaveHolds leaves Deployments that are held to the CanaryRelease that has the name by now.
func (s *observation) leaveHolds() {
	for i := range s.Workloads {
		s.Workloads[i].Held = false
	}
}

// concerned is what a warning is about: the first Deployment; the CanaryRelease for none.
func (s *observation) concerned() client.Object {
	for _, w := range s.Workloads {
		if d := s.deployments[w.Name]; d != nil {
			return d
		}
	}
	return s.CanaryRelease
}

// remains are what is left of a CanaryRelease, as one that made it; nil for nothing.
func (r *Reconciler) remains(ctx context.Context, key types.NamespacedName, now *v1alpha1.CanaryRelease) (*v1alpha1.CanaryRelease, error) {
	found := remains{now: now}
	found.Namespace, found.Name, found.Finalizers = key.Namespace, key.Name, []string{v1alpha1.FinalizerCanaryRelease}
	if err := r.noteObjects(ctx, &found); err != nil {
		return nil, err
	}
	if uid := r.helm.orphan(key); !found.any && uid != "" && (now == nil || now.UID != uid) {
		found.any, found.UID = true, uid // copies, which the cache does not show, go last
	}
	if !found.any && now != nil && isNew(now) {
		if err := r.noteCopies(ctx, &found); err != nil {
			return nil, err
		}
	}
	if !found.any {
		return nil, nil //nolint:nilnil // there is nothing
	}
	return &found.CanaryRelease, r.nameRelease(ctx, &found.CanaryRelease)
}

// noteObjects notes what the cache shows of one that is gone.
func (r *Reconciler) noteObjects(ctx context.Context, found *remains) error {
	splits, services, sets := &splitv1.TrafficSplitList{}, &corev1.ServiceList{}, &appsv1.ReplicaSetList{}
	for _, list := range []client.ObjectList{splits, services, sets} {
		if err := r.client.List(ctx, list, client.InNamespace(found.Namespace), client.MatchingLabels{v1alpha1.LabelCanaryRelease: found.Name}); err != nil {
			return fmt.Errorf("%s could not be listed: %w", kindOf(list), err)
		}
	}
	for i := range splits.Items {
		found.note(&splits.Items[i])
	}
	for i := range services.Items {
		if services.Items[i].DeletionTimestamp.IsZero() {
			found.note(&services.Items[i])
		}
	}
	for i := range sets.Items { // one that was adopted keeps its mark
		if c := metav1.GetControllerOfNoCopy(&sets.Items[i]); c != nil && c.Kind == "Service" {
			found.note(&sets.Items[i])
		}
	}
	return nil
}

// noteCopies notes the copies of one that is gone, unless they were looked for already for the one
// that has its name by now.
func (r *Reconciler) noteCopies(ctx context.Context, found *remains) error {
	key := client.ObjectKeyFromObject(&found.CanaryRelease)
	if r.helm.searchedFor(key) == found.now.UID {
		return nil
	}
	copies, denied, err := r.copies(ctx, key)
	if err != nil {
		return err
	}
	for i := range copies {
		found.note(&copies[i])
	}
	if !found.any && len(denied) == 0 {
		r.helm.setSearched(key, found.now.UID)
	}
	return nil
}

// remains is a CanaryRelease in the making.
type remains struct {
	v1alpha1.CanaryRelease
	now *v1alpha1.CanaryRelease
	any bool
}

// note notes an object that was made for the CanaryRelease, and not for the one that has its
// name by now. Those of an even earlier one come later.
func (f *remains) note(o client.Object) {
	uid := types.UID(o.GetAnnotations()[v1alpha1.AnnotationCanaryReleaseUID])
	if uid == "" || f.now != nil && f.now.UID == uid || f.any && f.UID != uid {
		return
	}
	f.any, f.UID = true, uid
	name := o.GetAnnotations()[v1alpha1.AnnotationCanaryWorkload]
	for _, w := range f.Status.Workloads {
		if w.Name == name {
			return
		}
	}
	if name != "" {
		f.Status.Workloads = append(f.Status.Workloads, v1alpha1.CanaryWorkload{Name: name})
	}
}

// nameRelease names the Helm release by a Deployment of it.
func (r *Reconciler) nameRelease(ctx context.Context, gone *v1alpha1.CanaryRelease) error {
	for _, w := range gone.Status.Workloads {
		d := &appsv1.Deployment{}
		if err := r.client.Get(ctx, types.NamespacedName{Namespace: gone.Namespace, Name: w.Name}, d); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the Deployment %q could not be read: %w", w.Name, err)
		}
		if name := d.Annotations[annotationRelease]; name != "" {
			gone.Spec.Release = name
			return nil
		}
	}
	return nil
}

// leftCopies are the copies that the account of the namespace may see. What it is denied to list
// stays: the manager has no right to read it.
func (r *Reconciler) leftCopies(ctx context.Context, gone *v1alpha1.CanaryRelease) (left []v1alpha1.CanaryCopy, denied bool, err error) {
	copies, kinds, err := r.copies(ctx, client.ObjectKeyFromObject(gone))
	if len(kinds) > 0 {
		log.FromContext(ctx).Info("Copies of a deleted CanaryRelease may be left: its account is not allowed to list them", "CanaryRelease", klog.KObj(gone), "kinds", kinds)
	}
	for i := range copies {
		if c := &copies[i]; isMarked(c, gone) {
			left = append(left, v1alpha1.CanaryCopy{Kind: c.Kind, Name: c.Name})
		}
	}
	return left, len(kinds) > 0, err
}

// copies are those that were made for CanaryReleases of a name, and the kinds that the account of the
// namespace is not allowed to list.
func (r *Reconciler) copies(ctx context.Context, of types.NamespacedName) (copies []metav1.PartialObjectMetadata, denied []string, err error) {
	as, err := r.options.As(of.Namespace)
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind + "List"})
		err := as.List(ctx, list, client.InNamespace(of.Namespace), client.MatchingLabels{v1alpha1.LabelCanaryRelease: of.Name})
		if apierrors.IsForbidden(err) {
			denied = append(denied, kind)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list what the canary read: %w", withoutValues(err))
		}
		for _, c := range list.Items {
			c.Kind = kind
			copies = append(copies, c)
		}
	}
	return copies, denied, nil
}
