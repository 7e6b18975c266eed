// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/plan"
	"github.com/serin-dev/serin/controllers/workload"
)

var (
	errUnknownAction = errors.New("no such action")
	errGone          = errors.New("an object that it needs is gone")
	// errAgain ends the actions after one that changes what was observed.
	errAgain = errors.New("observe again")
)

// apply carries one action out. Every change and deletion of an existing object names the
// version that the decision was made from.
func (r *Reconciler) apply(ctx context.Context, s scene, action plan.Action) error {
	switch a := action.(type) {
	case plan.AddFinalizer, plan.RemoveFinalizer:
		return r.setFinalizer(ctx, s, action)
	case plan.ApplyBackend:
		return r.applyBackend(ctx, s, a)
	case plan.DeleteBackend:
		return remove(ctx, r.client, a.Target, &corev1.Service{ObjectMeta: named(s, a.Name)})
	case plan.ApplySplit:
		return r.applySplit(ctx, s, a)
	case plan.DeleteSplit:
		return remove(ctx, r.client, a.Target, &splitv1.TrafficSplit{ObjectMeta: named(s, a.Name)})
	case plan.KeepCopy:
		return r.keepCopy(ctx, s, a)
	case plan.DropCopy:
		return r.dropCopy(ctx, s, a)
	case plan.SetHold:
		return r.setHold(ctx, s, a)
	case plan.Upgrade:
		return r.upgrade(ctx, s)
	}
	return r.applyToReplicaSet(ctx, s, action)
}

func (r *Reconciler) applyToReplicaSet(ctx context.Context, s scene, action plan.Action) error {
	switch a := action.(type) {
	case plan.CreateCanary:
		return r.createCanary(ctx, s, a)
	case plan.ScaleReplicaSet:
		metadata := map[string]any{"annotations": map[string]string{workload.AnnotationDesiredReplicas: strconv.Itoa(int(a.Desired))}}
		return r.patchReplicaSet(ctx, s, a.Target, metadata, map[string]any{"replicas": a.Replicas})
	case plan.ReleaseCanary:
		return r.patchReplicaSet(ctx, s, a.Target, map[string]any{"ownerReferences": nil}, nil)
	case plan.DeleteReplicaSet:
		return remove(ctx, r.client, a.Target, &appsv1.ReplicaSet{ObjectMeta: named(s, a.Name)})
	}
	return fmt.Errorf("%w: %T", errUnknownAction, action)
}

func named(s scene, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.CanaryRelease.Namespace, Name: name}
}

func (r *Reconciler) setFinalizer(ctx context.Context, s scene, action plan.Action) error {
	next := s.CanaryRelease.DeepCopy()
	change := controllerutil.AddFinalizer
	if _, remove := action.(plan.RemoveFinalizer); remove {
		change = controllerutil.RemoveFinalizer
	}
	if !change(next, v1alpha1.FinalizerCanaryRelease) {
		return nil
	}
	patch := client.MergeFromWithOptions(s.CanaryRelease, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.client.Patch(ctx, next, patch))
}

// of is the workload that the objects of a Service are made for.
func (s *scene) of(service string) string {
	for i := range s.Services {
		if s.Services[i].Name == service {
			return s.Services[i].Workload
		}
	}
	return ""
}

// applyBackend makes the Service of a version what it has to be, whatever somebody added:
// it is Serin's alone, so the lists are replaced and not merged.
func (r *Reconciler) applyBackend(ctx context.Context, s scene, a plan.ApplyBackend) error {
	root := s.root(a.Service)
	if root == nil {
		return fmt.Errorf("%w: Service %q", errGone, a.Service)
	}
	want := s.makeBackend(root, a.Role, a.Revision, s.of(a.Service))
	live := s.services[want.Name]
	if live == nil {
		return staleIfThere(r.client.Create(ctx, want, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease)))
	}
	next := live.DeepCopy()
	for k, v := range want.Labels {
		next.Labels = with(next.Labels, k, v)
	}
	for k, v := range want.Annotations {
		next.Annotations = with(next.Annotations, k, v)
	}
	next.Spec.Selector, next.Spec.Ports = want.Spec.Selector, want.Spec.Ports
	next.Spec.TrafficDistribution, next.Spec.InternalTrafficPolicy = want.Spec.TrafficDistribution, want.Spec.InternalTrafficPolicy
	return r.client.Update(ctx, next, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease))
}

// applySplit creates the TrafficSplit of a Service, or changes the one that was observed.
func (r *Reconciler) applySplit(ctx context.Context, s scene, a plan.ApplySplit) error {
	root := s.root(a.Service)
	if root == nil {
		return fmt.Errorf("%w: Service %q", errGone, a.Service)
	}
	live := s.splits[a.Service]
	if live == nil {
		split := &splitv1.TrafficSplit{ObjectMeta: named(s, a.Service)}
		s.setSplit(split, root, a.Weights, s.of(a.Service))
		return staleIfThere(r.client.Create(ctx, split, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease)))
	}
	next := live.DeepCopy()
	s.setSplit(next, root, a.Weights, s.of(a.Service))
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	return r.client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease))
}

// setHold owns just spec.paused. What was seen is named when it is given up: a template
// that was changed meanwhile must be known before it rolls.
func (r *Reconciler) setHold(ctx context.Context, s scene, a plan.SetHold) error {
	live := s.deployments[a.Workload]
	if live == nil {
		return fmt.Errorf("%w: Deployment %q", errGone, a.Workload)
	}
	d := applyappsv1.Deployment(live.Name, live.Namespace).WithUID(live.UID)
	if a.Paused {
		d.WithSpec(applyappsv1.DeploymentSpec().WithPaused(true))
	} else {
		d.WithResourceVersion(live.ResourceVersion)
	}
	return r.client.Apply(ctx, d, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease), client.ForceOwnership)
}

// createCanary makes the ReplicaSet of a candidate. Its controller is a root Service of
// it, so that the Deployment controller leaves it alone.
func (r *Reconciler) createCanary(ctx context.Context, s scene, a plan.CreateCanary) error {
	d, c := s.deployments[a.Workload], s.candidate(a.Workload)
	root, revision := s.controllerOf(a.Workload)
	if d == nil || c == nil || root == nil {
		return fmt.Errorf("%w: Deployment %q or its Service", errGone, a.Workload)
	}
	rs := makeCanary(d, c, workload.CanaryController(root), revision, a.Replicas)
	mark(rs, s.CanaryRelease, a.Workload)
	if c.Rolls {
		rs.Annotations = with(rs.Annotations, v1alpha1.AnnotationCanaryRolls, "true")
	}
	return withoutValues(staleIfThere(r.client.Create(ctx, rs, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease))))
}

// controllerOf is the first Service of a workload, and the revision of its candidate.
func (s *scene) controllerOf(name string) (root *corev1.Service, revision string) {
	for _, w := range s.Workloads {
		if w.Name == name {
			revision = w.Revision
		}
	}
	for _, service := range s.Services {
		if service.Wanted && service.Workload == name {
			return s.services[service.Name], revision
		}
	}
	return nil, revision
}

// patchReplicaSet changes the exact ReplicaSet that was observed.
func (r *Reconciler) patchReplicaSet(ctx context.Context, s scene, t plan.Target, metadata, spec map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = string(t.UID), t.ResourceVersion
	body := map[string]any{"metadata": metadata}
	if spec != nil {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: named(s, t.Name)}
	return r.client.Patch(ctx, rs, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManagerCanaryRelease))
}

// remove deletes the exact object that was observed.
func remove(ctx context.Context, c client.Client, t plan.Target, obj client.Object) error {
	return client.IgnoreNotFound(c.Delete(ctx, obj,
		client.Preconditions{UID: &t.UID, ResourceVersion: &t.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// staleIfThere turns "already exists" into a conflict: whoever made the object, the cache
// did not show it yet.
func staleIfThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("canaryreleases").GroupResource(), "", err)
	}
	return err
}
