// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
	"github.com/serin-dev/serin/controllers/workload"
)

var (
	errGone = errors.New("an object that the canary needs is gone")
	// errAgain ends the actions after one that changes what was observed.
	errAgain = errors.New("observe again")
)

// apply carries one action out. Every change and deletion of an existing object names the
// version that the decision was made from.
func (r *Reconciler) apply(ctx context.Context, s observation, action kit.Action) error {
	if _, upgrades := action.(helmrelease.Upgrade); upgrades {
		return r.upgrade(ctx, s)
	}
	ctx, cancel := bounds.Within(ctx)
	defer cancel()
	switch a := action.(type) {
	case kit.AddFinalizer, kit.RemoveFinalizer:
		return s.writer(r.client).SetFinalizer(ctx, s.CanaryRelease, v1alpha1.FinalizerCanaryRelease, action)
	case kit.ApplyBackend:
		return r.applyBackend(ctx, s, a)
	case helmrelease.ApplySplit:
		return r.applySplit(ctx, s, a)
	case helmrelease.KeepCopy:
		return r.keepCopy(ctx, s, a)
	case helmrelease.DropCopy:
		return r.dropCopy(ctx, s, a)
	case helmrelease.SetHold:
		return r.setHold(ctx, s, a)
	case helmrelease.CreateCanary:
		return r.createCanary(ctx, s, a)
	case kit.ReleaseCanary:
		return s.writer(r.client).HandOver(ctx, r.options.Live, s.deploymentOf(a.Object), a)
	}
	return s.writer(r.client).Apply(ctx, action)
}

// writer acts on what was observed, through a client.
func (s *observation) writer(c client.Client) shell.Writer {
	return shell.Writer{Client: c, Manager: v1alpha1.FieldManagerCanaryRelease, Namespace: s.CanaryRelease.Namespace}
}

// of is the workload that the objects of a Service are made for.
func (s *observation) of(service string) string {
	for i := range s.Services {
		if s.Services[i].Name == service {
			return s.Services[i].Workload
		}
	}
	return ""
}

// deploymentOf is the one whose canary a ReplicaSet is.
func (s *observation) deploymentOf(replicaSet kit.Object) *appsv1.Deployment {
	i := slices.IndexFunc(s.Workloads, func(w helmrelease.Workload) bool {
		return slices.ContainsFunc(w.ReplicaSets, func(r kit.ReplicaSet) bool { return r.UID == replicaSet.UID })
	})
	return s.deployments[s.Workloads[i].Name]
}

// applyBackend makes the Service of a version what it has to be.
func (r *Reconciler) applyBackend(ctx context.Context, s observation, a kit.ApplyBackend) error {
	root := s.root(a.Service)
	if root == nil {
		return fmt.Errorf("%w: Service %q", errGone, a.Service)
	}
	want := s.makeBackend(root, a.Role, a.Revision, s.of(a.Service))
	return s.writer(r.client).ApplyBackend(ctx, s.services[want.Name], want)
}

// applySplit creates the TrafficSplit of a Service, or changes the one that was observed.
func (r *Reconciler) applySplit(ctx context.Context, s observation, a helmrelease.ApplySplit) error {
	root := s.root(a.Service)
	if root == nil {
		return fmt.Errorf("%w: Service %q", errGone, a.Service)
	}
	live := s.splits[a.Service]
	if live == nil {
		split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: root.Namespace, Name: a.Service}}
		s.setSplit(split, root, a.Weights, s.of(a.Service))
		return s.writer(r.client).Create(ctx, split)
	}
	next := live.DeepCopy()
	s.setSplit(next, root, a.Weights, s.of(a.Service))
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	return r.client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease))
}

// setHold owns just spec.paused. What was seen is named when it is given up: a template
// that was changed meanwhile must be known before it rolls.
func (r *Reconciler) setHold(ctx context.Context, s observation, a helmrelease.SetHold) error {
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
func (r *Reconciler) createCanary(ctx context.Context, s observation, a helmrelease.CreateCanary) error {
	d, c := s.deployments[a.Workload], s.candidate(a.Workload)
	root, revision := s.controllerOf(a.Workload)
	if d == nil || c == nil || root == nil {
		return fmt.Errorf("%w: Deployment %q or its Service", errGone, a.Workload)
	}
	rs := makeCanary(d, c, workload.CanaryController(root), revision, a.Replicas)
	mark(rs, s.CanaryRelease, a.Workload)
	if c.Rolls {
		rs.Annotations = shell.With(rs.Annotations, map[string]string{v1alpha1.AnnotationCanaryRolls: "true"})
	}
	return withoutValues(s.writer(r.client).Create(ctx, rs))
}

// controllerOf is the first Service of a workload, and the revision of its candidate.
func (s *observation) controllerOf(name string) (root *corev1.Service, revision string) {
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
