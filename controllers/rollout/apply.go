// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-openapi/jsonpointer"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/debounce"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// errBusy is a conflict that is sure to come, so that it is not tried.
var errBusy = apierrors.NewConflict(appsv1.Resource("deployments"), "", errors.New("its controller is changing it"))

// apply carries one action out. Every change and deletion of an existing object
// names the version that the decision was made from.
func (r *Reconciler) apply(ctx context.Context, s snapshot, action kit.Action) error {
	switch a := action.(type) {
	case kit.AddFinalizer, kit.RemoveFinalizer:
		return r.writer(s).SetFinalizer(ctx, s.Rollout, v1alpha1.Finalizer, action)
	case state.SetPaused:
		return r.setHold(ctx, s, a.Paused)
	case state.RestoreDeployment:
		return r.restoreDeployment(ctx, s, a)
	case kit.ApplyBackend:
		return r.writer(s).ApplyBackend(ctx, s.backends[a.Role], makeBackend(&s, a.Role, a.Revision))
	case state.PointPreview:
		return r.pointPreview(ctx, s, a)
	case state.ApplySplit:
		return r.applySplit(ctx, s, a.Route)
	case state.SetDelegation, state.ClearDelegation:
		return r.applyDelegation(ctx, s, action)
	case state.KeepContent, state.SetConfiguration, state.DropContent:
		return r.applyConfiguration(ctx, s, action)
	case state.CreateCanary:
		return r.createCanary(ctx, s, a)
	case state.AdoptCanary:
		return r.claim(ctx, s, a.Object)
	case kit.ReleaseCanary:
		return r.writer(s).HandOver(ctx, r.options.Live, s.deployment, a)
	}
	return r.writer(s).Apply(ctx, action)
}

func (r *Reconciler) writer(s snapshot) shell.Writer {
	return shell.Writer{Client: r.client, Manager: v1alpha1.FieldManager, Namespace: s.Rollout.Namespace}
}

func named(s snapshot, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Rollout.Namespace, Name: name}
}

// deploymentPause is how long a Deployment has to look the same before a write that names
// its version: its controller writes the status many times in a row, and each would make
// the write fail.
var deploymentPause = debounce.Pause{Quiet: shell.ConflictPause, Most: 2 * time.Second}

// setHold marks the Deployment and pauses it, or lets it go on while its controller rests.
func (r *Reconciler) setHold(ctx context.Context, s snapshot, paused bool) error {
	if !paused && s.deployment.Spec.Paused && r.busy.Look(s.deployment.UID, s.deployment.ResourceVersion, deploymentPause, s.Now) > 0 {
		return errBusy
	}
	_, err := r.applyHold(ctx, s, map[string]string{v1alpha1.AnnotationRollout: s.Rollout.Name}, paused)
	return err
}

// applyHold owns just the mark and spec.paused. Un-pausing names the version of
// the Deployment that was seen: a template changed meanwhile must not roll.
func (r *Reconciler) applyHold(ctx context.Context, s snapshot, annotations map[string]string, paused bool) (*applyappsv1.DeploymentApplyConfiguration, error) {
	d := applyappsv1.Deployment(s.deployment.Name, s.deployment.Namespace).WithUID(s.deployment.UID).
		WithAnnotations(annotations).WithSpec(applyappsv1.DeploymentSpec().WithPaused(paused))
	if !paused {
		d.WithResourceVersion(s.deployment.ResourceVersion)
	}
	return d, r.client.Apply(ctx, d, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
}

// restoreDeployment removes the mark, and spec.paused too unless it has to stay. A mark that
// another manager wrote too, as from an export of the Deployment, would hold it for ever.
func (r *Reconciler) restoreDeployment(ctx context.Context, s snapshot, a state.RestoreDeployment) error {
	d, err := r.applyHold(ctx, s, nil, a.Paused)
	if _, marked := d.Annotations[v1alpha1.AnnotationRollout]; err != nil || !marked {
		return err
	}
	unmark := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null}}}`, s.deployment.UID, v1alpha1.AnnotationRollout)
	return r.client.Patch(ctx, s.deployment.DeepCopy(), client.RawPatch(types.MergePatchType, unmark), client.FieldOwner(v1alpha1.FieldManager))
}

func (r *Reconciler) createCanary(ctx context.Context, s snapshot, a state.CreateCanary) error {
	rs := workload.MakeCanary(s.deployment, workload.CanaryController(s.root), a.Revision, a.Replicas)
	workload.Mark(rs, s.Rollout)
	err := r.client.Create(ctx, rs, client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a ReplicaSet %q of another owner exists; delete it: %w", rs.Name, err)
	}
	return err
}

// claim makes an old ReplicaSet of the Deployment the canary. An earlier promotion says nothing
// about this release.
func (r *Reconciler) claim(ctx context.Context, s snapshot, t kit.Object) error {
	return r.writer(s).PatchReplicaSet(ctx, t, map[string]any{
		"ownerReferences": []metav1.OwnerReference{workload.CanaryController(s.root)},
		"labels":          map[string]any{v1alpha1.LabelRollout: s.Rollout.Name, v1alpha1.LabelPromotion: nil},
		"annotations":     map[string]string{v1alpha1.AnnotationRolloutUID: string(s.Rollout.UID)},
	}, nil)
}

func makeBackend(s *snapshot, role, revision string) *corev1.Service {
	svc := workload.MakeBackend(s.root, s.declared, role, revision)
	svc.Spec.TrafficDistribution = workload.Distribution(s.Rollout, s.root)
	workload.Mark(svc, s.Rollout)
	return svc
}

// pointPreview adds the key of a revision to the selector of a preview Service, or removes the
// key, as the field manager that the policies which keep such keys let through. The time of the
// record is that of the write, rounded up.
func (r *Reconciler) pointPreview(ctx context.Context, s snapshot, a state.PointPreview) error {
	live, pin := s.previews[a.Name], traffic.Pin{}
	if a.Revision != "" {
		since := metav1.NewTime(s.Now.Add(time.Second).Truncate(time.Second))
		pin = traffic.Pin{Rollout: s.Rollout.Name, Since: &since, Keys: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: a.Revision}}
	}
	changed := live.DeepCopy()
	if err := traffic.SetPin(changed, pin); err != nil {
		return err
	}
	w := r.writer(s)
	w.Manager = traffic.FieldManager
	return w.PatchDifference(ctx, live, changed)
}

// applySplit creates the TrafficSplit, or changes the generation that was observed.
func (r *Reconciler) applySplit(ctx context.Context, s snapshot, route strategy.Route) error {
	if s.split == nil {
		ts := &splitv1.TrafficSplit{ObjectMeta: named(s, s.Rollout.Name)}
		ts.Finalizers = []string{traffic.Finalizer}
		setSplit(ts, s, route)
		return r.writer(s).Create(ctx, ts)
	}
	next := s.split.DeepCopy()
	setSplit(next, s, route)
	patch, err := splitPatch(s.split, next)
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, next, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	return staleIfUnmet(err)
}

// operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// splitPatch changes what Serin writes of a split if its spec is still the one that was
// observed. Routers write its status all the time, which says nothing against a change
// of the spec, so the precondition is its generation and not its resourceVersion.
func splitPatch(live, next *splitv1.TrafficSplit) ([]byte, error) {
	patch := []operation{
		{"test", "/metadata/uid", live.UID},
		{"test", "/metadata/generation", live.Generation},
		{"add", "/spec", next.Spec},
	}
	patch = append(patch, mapPatch("/metadata/labels", live.Labels, next.Labels)...)
	patch = append(patch, mapPatch("/metadata/annotations", live.Annotations, next.Annotations)...)
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return body, nil
}

// mapPatch changes the keys that differ and no others.
func mapPatch(path string, live, next map[string]string) []operation {
	if len(live) == 0 {
		return []operation{{"add", path, next}}
	}
	var patch []operation
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if value, found := live[key]; !found || value != next[key] {
			patch = append(patch, operation{"add", path + "/" + jsonpointer.Escape(key), next[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if _, kept := next[key]; !kept {
			patch = append(patch, operation{Op: "remove", Path: path + "/" + jsonpointer.Escape(key)})
		}
	}
	return patch
}

// staleIfUnmet turns the failed test of a JSON patch into a conflict: the API server
// says "invalid" of it, but names no field.
func staleIfUnmet(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return err
	}
	if d := status.Status().Details; d != nil && len(d.Causes) > 0 {
		return err
	}
	return apierrors.NewConflict(splitv1.GroupVersion.WithResource("trafficsplits").GroupResource(), "", err)
}
