// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// edit changes the Rollout as kubectl apply does.
func (s *scene) edit(change func(*v1alpha1.RolloutSpec)) {
	s.Helper()
	ro := s.rollout()
	next := ro.DeepCopy()
	change(&next.Spec)
	if err := admin.Patch(s.Context(), next, client.MergeFrom(ro)); err != nil {
		s.Fatal(err)
	}
}

// decide is what a person decides about the revision that is being released.
func (s *scene) decide(action v1alpha1.ControlAction) {
	s.Helper()
	s.edit(func(spec *v1alpha1.RolloutSpec) {
		spec.Control = &v1alpha1.Control{Revision: s.rollout().Status.Canary.Revision, Action: action}
	})
}

// under brings a website up under a Rollout of the given strategy.
func under(t *testing.T, m *measurements, change func(*v1alpha1.RolloutSpec)) *scene {
	t.Helper()
	s := newScene(t)
	ro := newRollout()
	change(&ro.Spec)
	s.create(deployment("website", 4), service("website"), ro)
	s.serveProxies()
	s.startOperator(m)
	s.waitReady()
	return s
}

func TestThePreviewServiceLeadsToTheNewVersionWhileItIsTried(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ro, preview := newRollout(), service("website")
	preview.Name = "website-preview"
	declared := preview.Spec.Selector
	ro.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{PreviewService: preview.Name, Until: v1alpha1.UntilManual, ScaleDownDelay: "1s"}}
	s.create(deployment("website", 2), service("website"), preview, ro)
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.waitReady()
	selector := func() map[string]string {
		live := &corev1.Service{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: preview.Name}, live); err != nil {
			t.Fatal(err)
		}
		return live.Spec.Selector
	}
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	if got, want := selector()["pod-template-hash"], s.rollout().Status.Canary.Revision; got != want {
		t.Errorf("while it is tried, it selects %q, want %q", got, want)
	}
	s.decide(v1alpha1.ControlPromote)
	s.waitReady()
	s.eventually("the selector is what its owner declared", func(context.Context) bool { return maps.Equal(declared, selector()) })
}

func TestAFreezeOfThePlatformHoldsAReleaseAndNotARollback(t *testing.T) {
	t.Parallel()
	m := newMeasurements()
	s := under(t, m, func(spec *v1alpha1.RolloutSpec) {
		spec.Strategy.Steps = []v1alpha1.Step{{Weight: 20, Until: v1alpha1.UntilManual}, {Weight: 60}}
	})
	freeze := &v1alpha1.Freeze{}
	freeze.GenerateName = "audit-"
	freeze.Spec.Reason = "audit"
	freeze.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	if err := admin.Create(t.Context(), freeze); err != nil {
		t.Fatal(err)
	}
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForSchedule)
	if pods := s.pods(); len(pods[imageV2]) != 0 {
		t.Errorf("pods %v in a freeze", pods)
	}
	if err := admin.Delete(t.Context(), freeze); err != nil {
		t.Fatal(err)
	}
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	again := freeze.DeepCopy()
	again.ResourceVersion, again.UID = "", ""
	if err := admin.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), again); err != nil {
			t.Error(err)
		}
	})
	s.decide(v1alpha1.ControlPromote)
	s.waitReason(v1alpha1.ReasonWaitingForSchedule)
	s.decide(v1alpha1.ControlAbort)
	s.waitReason(v1alpha1.ReasonRolledBack)
}
