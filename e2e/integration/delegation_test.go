// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// canaryInGit is a CanaryRelease that lets the Rollout decide.
const canaryInGit = `apiVersion: serin.dev/v1alpha1
kind: CanaryRelease
metadata: {name: try}
spec: {release: shop, version: 4, config: "replicas: 3", delegation: {rollout: website}}
`

// gitOps applies a manifest as a tool does that takes every field over that it names.
func (s *scene) gitOps(manifest string) {
	s.Helper()
	s.mustKubectl("git", manifest, "apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-")
}

func (s *scene) try() *v1alpha1.CanaryRelease {
	s.Helper()
	return s.get(s.Context(), "try", &v1alpha1.CanaryRelease{}).(*v1alpha1.CanaryRelease)
}

// obey is what the controller of CanaryReleases makes of spec.delegation, without Helm and pods.
func obey(cr *v1alpha1.CanaryRelease, now metav1.MicroTime) {
	st := &cr.Status
	st.ObservedGeneration, st.ManifestDigest = cr.Generation, "d1"
	st.Release = &v1alpha1.CanaryHelmRelease{Revision: 4}
	st.Workloads = []v1alpha1.CanaryWorkload{{Name: "website", Replicas: 2, ReadyReplicas: 2}}
	var weight int32
	var transition v1alpha1.CanaryTransition
	if d := cr.Spec.Delegation; d != nil && d.ManifestDigest == "d1" {
		transition = d.Transition
		if d.Weight != nil {
			weight = *d.Weight
		}
	}
	st.Delegation = &v1alpha1.CanaryDelegationStatus{Weight: weight, Programmed: true}
	st.Services = []v1alpha1.CanaryServiceStatus{{Service: "website", Programmed: true, Ports: []v1alpha1.CanaryPortStatus{{Port: "80/TCP", Weight: weight}}}}
	if transition != "" && st.Decision == nil {
		st.Decision = &v1alpha1.CanaryDecision{Transition: transition, Reason: v1alpha1.ReasonRequested, Message: "its Rollout wants it", Time: now, EndedAt: &now}
	}
}

// obeying plays that controller until the test ends.
func (s *scene) obeying() {
	s.Helper()
	s.follow(&v1alpha1.CanaryReleaseList{}, func(o client.Object) {
		cr, ok := o.(*v1alpha1.CanaryRelease)
		if !ok {
			return
		}
		before := cr.DeepCopy()
		obey(cr, metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)))
		if equality.Semantic.DeepEqual(before, cr) {
			return
		}
		err := admin.Status().Patch(s.Context(), cr, client.MergeFrom(before))
		if client.IgnoreNotFound(err) != nil && s.Context().Err() == nil {
			s.Errorf("the CanaryRelease: %v", err)
		}
	})
}

// delegated brings a Rollout of a CanaryRelease up.
func delegated(t *testing.T, m *measurements, manifest string, steps ...v1alpha1.Step) *scene {
	t.Helper()
	s := newScene(t)
	s.bindClusterRole("git", "edit")
	s.waitRights("git", may{"patch", "canaryreleases", ""})
	ro := newRollout(steps...)
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindCanaryRelease, Name: "try"}
	s.create(service("website"), ro)
	s.gitOps(manifest)
	s.obeying()
	s.startOperator(m)
	return s
}

// owned are the fields of a manager, as the API server keeps them.
func owned(o client.Object, manager string) string {
	for _, m := range o.GetManagedFields() {
		if m.Manager == manager && m.Subresource == "" {
			return string(m.FieldsV1.GetRawBytes())
		}
	}
	return ""
}

func TestARolloutOwnsOnlyWhatItDecidesAboutACanaryRelease(t *testing.T) {
	t.Parallel()
	s := delegated(t, newMeasurements(), canaryInGit, v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 60})
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	const fields = `{"f:spec":{"f:delegation":{"f:by":{},"f:manifestDigest":{},"f:weight":{}}}}`
	if got := owned(s.try(), v1alpha1.FieldManager); got != fields {
		t.Errorf("it owns %s, want %s", got, fields)
	}
	s.gitOps(canaryInGit)
	if d := s.try().Spec.Delegation; d.Weight == nil || *d.Weight != 20 {
		t.Errorf("Git has taken the weight away: %+v", d)
	}
	s.decide(v1alpha1.ControlPromote)
	s.eventually("promoted", func(context.Context) bool {
		h := s.rollout().Status.History
		return len(h) == 1 && h[0].Outcome == v1alpha1.OutcomePromoted
	})
	if d := s.try().Spec.Delegation; d.Transition != v1alpha1.CanaryTransitionAdopted || *d.Weight != 100 {
		t.Errorf("%+v", d)
	}
	if err := admin.Delete(s.Context(), s.rollout()); err != nil {
		s.Fatal(err)
	}
	s.eventually("the Rollout is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, s.key("website"), &v1alpha1.Rollout{}))
	})
	if d := s.try().Spec.Delegation; d.Rollout != "website" || d.Weight != nil || d.Transition != "" || d.ManifestDigest+d.By != "" {
		t.Errorf("something is left of what was decided: %+v", d)
	}
}

// Without consent nothing is written; and what was written would be refused.
func TestACanaryReleaseWithoutConsentIsNotTouched(t *testing.T) {
	t.Parallel()
	without := strings.Replace(canaryInGit, ", delegation: {rollout: website}", "", 1)
	s := delegated(t, newMeasurements(), without)
	s.waitReason(v1alpha1.ReasonConflict)
	if d := s.try().Spec.Delegation; d != nil {
		t.Errorf("%+v", d)
	}
	weight := fmt.Sprintf(strings.Replace(without, "release: shop, version: 4, config: \"replicas: 3\"", "%s", 1), "delegation: {weight: 50}")
	out, err := s.kubectl("git", weight, "apply", "--server-side", "--force-conflicts", "--field-manager="+v1alpha1.FieldManager, "-f", "-")
	if err == nil || !strings.Contains(out, "spec.delegation.rollout: Required value") {
		t.Errorf("%v: %s", err, out)
	}
	s.gitOps(canaryInGit)
	s.eventually("promoted", func(context.Context) bool { return len(s.rollout().Status.History) == 1 })
}

// The whole of it, with Helm and both controllers; only traffic and nginx are made up.
func TestARolloutHasAHelmReleaseUpgraded(t *testing.T) {
	t.Parallel()
	h := newHelmScene(t)
	h.install("tcp", map[string]any{"maxmemory": "32mb"})
	h.optIn("tcp")
	ro := newRollout()
	ro.Spec.Service = "tcp"
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindCanaryRelease, Name: "try"}
	cr := &v1alpha1.CanaryRelease{ObjectMeta: metav1.ObjectMeta{Name: "try"}}
	cr.Spec = v1alpha1.CanaryReleaseSpec{Release: "tcp", Version: 1, Config: "maxmemory: 128mb", Delegation: &v1alpha1.CanaryDelegation{Rollout: ro.Name}}
	h.create(ro, cr)
	h.serveProxies()
	h.startOperator(newMeasurements(), withCanaries)
	h.eventually("promoted", func(context.Context) bool { return len(h.rollout().Status.History) == 1 })
	if got := h.rollout().Status.History[0]; got.Outcome != v1alpha1.OutcomePromoted {
		t.Errorf("it ended as %s: %s", got.Outcome, got.Message)
	}
	if diff := cmp.Diff([]string{"superseded Install complete", "deployed Canary release try adopted"}, h.history("tcp")); diff != "" {
		t.Error(diff)
	}
	if got := h.args(); got != "--maxmemory 128mb" {
		t.Errorf("the Deployment has %s", got)
	}
	if w := h.try().Status.Workloads; len(w) != 1 || !w[0].HandedOver {
		t.Errorf("the canary's pods were not handed over: %+v", w)
	}
	d, root := &appsv1.Deployment{}, &corev1.Service{}
	h.get(t.Context(), "tcp", d)
	h.get(t.Context(), "tcp", root)
	splits := &splitv1.TrafficSplitList{}
	if err := admin.List(t.Context(), splits, client.InNamespace(h.namespace)); err != nil {
		t.Fatal(err)
	}
	if d.Spec.Paused || len(root.Spec.Selector) != 1 || len(splits.Items) > 0 {
		t.Errorf("paused %v, selector %v, splits %d", d.Spec.Paused, root.Spec.Selector, len(splits.Items))
	}
}
