// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// TestDelegatedCanaryRelease has a Rollout decide about two canaries of a Helm release under load:
// it promotes a good one, which Helm has as the next revision then, beside an autoscaler, and
// rolls back one that fails one answer in twenty.
func TestDelegatedCanaryRelease(t *testing.T) {
	play(t, func(a *attempt) {
		s := newSite(a, "serin-delegated", "canary")
		s.metrics.scraped(a)
		part := canaryParts[0]
		s.installCharts([]canaryPart{part})
		s.startLoad("http://"+part.service, part.service)
		s.begin()
		s.createDelegate(part)

		s.autoscale(part, 3)
		s.delegate(part, 1, "version: v4\n", v1alpha1.OutcomePromoted, v1alpha1.ReasonAdopted)
		s.requireReplicas(part, 3)
		s.stopAutoscaling(part, 2)
		if values := s.helm("get", "values", part.release); !strings.Contains(values, "version: v4") {
			a.Errorf("helm get values %s: %q", part.release, values)
		}
		s.requireDelegated(part, 2)

		s.record.Bad = "v3"
		s.kubectl("patch", "rollout", part.release, "--type=merge", "-p", `{"spec":{"strategy":{"steps":[{"weight":20,"hold":"5m"}]}}}`)
		ended := s.delegate(part, 2, "version: v3\nfailPercent: 5\n", v1alpha1.OutcomeRolledBack, v1alpha1.ReasonDeprecated)
		if !strings.Contains(ended.Message, "more often than stable") {
			a.Errorf("it was rolled back for another reason: %s", ended.Message)
		}
		s.requireDelegated(part, 2)

		s.awaitConnections()
		s.measure("after the rollback", map[string]float64{"v4": 1})
		s.kubectl("delete", "rollout", part.release, "--timeout", stateLimit.String())
		s.requireAsBefore(false)
		s.endLoad()
		s.judge()
	})
}

// createDelegate makes the Rollout that decides about the CanaryReleases of a part.
func (s *site) createDelegate(part canaryPart) {
	s.t.Helper()
	err := s.api.Create(s.t.Context(), &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: part.release},
		Spec: v1alpha1.RolloutSpec{
			WorkloadRef: v1alpha1.WorkloadReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindCanaryRelease, Name: part.release},
			Service:     part.service,
			Strategy:    v1alpha1.Strategy{Steps: []v1alpha1.Step{{Weight: 20, Hold: "5s"}}},
			Analysis:    &v1alpha1.Analysis{OnInconclusive: v1alpha1.InconclusivePromote},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// requireDelegated checks that Helm has a revision, and that it is what runs, and deletes the
// canary that has ended.
func (s *site) requireDelegated(part canaryPart, revision int32) {
	s.t.Helper()
	s.requireRevision(part, revision)
	s.requireNoDifference(part.release)
	s.deleteCanary(part)
}

// autoscale has an autoscaler see to it that a release has that many pods at least. Serin
// moves shares of the traffic, and leaves the number of pods to it.
func (s *site) autoscale(part canaryPart, least int32) {
	s.t.Helper()
	err := s.api.Create(s.t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: part.deployment},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: part.deployment},
			MinReplicas:    &least, MaxReplicas: least,
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.requireReplicas(part, least)
}

// stopAutoscaling takes the autoscaler away, and scales the release as its chart says: once
// more if Kubernetes follows the autoscaler before it sees that it is gone.
func (s *site) stopAutoscaling(part canaryPart, replicas int32) {
	s.t.Helper()
	s.kubectl("delete", "horizontalpodautoscaler", part.deployment)
	s.awaitReplicas(part, replicas, func() {
		s.kubectl("scale", "deployment/"+part.deployment, fmt.Sprintf("--replicas=%d", replicas))
	})
}

// requireReplicas waits until a release has exactly that many pods, all of them available.
func (s *site) requireReplicas(part canaryPart, want int32) {
	s.t.Helper()
	s.awaitReplicas(part, want, func() {})
}

// awaitReplicas is requireReplicas, and calls scale whenever the release shall have another
// number of pods.
func (s *site) awaitReplicas(part canaryPart, want int32, scale func()) {
	s.t.Helper()
	d := &appsv1.Deployment{}
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		if err := s.api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: part.deployment}, d); err != nil {
			return false, err
		}
		if *d.Spec.Replicas != want {
			scale()
			return false, nil
		}
		return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == want && d.Status.AvailableReplicas == want, nil
	})
	if err != nil {
		s.t.Fatalf("wait until Deployment %s has %d pods: %v; it shall have %d, and has %d, %d of them available", part.deployment, want, err,
			ptr.Deref(d.Spec.Replicas, 1), d.Status.Replicas, d.Status.AvailableReplicas)
	}
}

func (s *site) requireRevision(part canaryPart, revision int32) {
	s.t.Helper()
	status := s.helm("status", part.release)
	if !strings.Contains(status, "STATUS: deployed") || !strings.Contains(status, fmt.Sprintf("REVISION: %d\n", revision)) {
		s.t.Errorf("helm status %s, want revision %d: %s", part.release, revision, status)
	}
}

// delegate makes a canary of a revision that the Rollout of the part's name decides about, and
// returns how that ended. The CanaryRelease has to end as the reason says.
func (s *site) delegate(part canaryPart, revision int32, config, outcome string, reason v1alpha1.Reason) v1alpha1.HistoryEntry {
	s.t.Helper()
	cr := part.canary(s.namespace)
	cr.Spec.Version, cr.Spec.Config, cr.Spec.Delegation = revision, config, &v1alpha1.CanaryDelegation{Rollout: part.release}
	ro := &v1alpha1.Rollout{}
	before, said := -1, ""
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		if err := s.api.Get(ctx, client.ObjectKeyFromObject(cr), ro); err != nil {
			return false, err
		}
		if before < 0 {
			before = len(ro.Status.History)
			if err := s.api.Create(ctx, cr); err != nil {
				return false, err
			}
		}
		if message := readyMessage(ro); message != said {
			said = message
			s.t.Log(time.Now().UTC().Format(timeOfDay), said)
		}
		return len(ro.Status.History) > before, nil
	})
	if err != nil {
		s.t.Fatalf("wait until the Rollout %s has decided: %v; it says: %s", part.release, err, said)
	}
	ended := ro.Status.History[0]
	s.t.Logf("%s: %s", ended.Outcome, ended.Message)
	if ended.Outcome != outcome {
		s.t.Errorf("the release ended as %s, want %s", ended.Outcome, outcome)
	}
	s.awaitCanary(part, reason)
	return ended
}
