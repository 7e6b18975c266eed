// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	imageV1 = "example.invalid/app:v1"
	imageV2 = "example.invalid/app:v2"
)

// website is a namespace in which v1 is stable under a Rollout.
func website(t *testing.T, m *measurements, label ...func(map[string]string)) *scene {
	t.Helper()
	s := newScene(t, label...)
	s.create(deployment("website", 4), service("website"), newRollout())
	s.serveProxies()
	s.startOperator(m)
	s.waitReady()
	return s
}

func TestThePodsOfThePromotedCanaryBecomeTheDeploymentsPods(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"held at paused": false, "under the admission policy": true} {
		if guarded && !servesPolicies {
			continue // the same is played under the webhook
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := website(t, newMeasurements(), guardedIf(guarded))
			// A new policy is relied on only after some seconds.
			s.eventually("not paused in steady state, if the policy is there", func(context.Context) bool {
				return s.deployment().Spec.Paused != guarded
			})
			s.setImage(imageV2)
			var canary []string
			s.eventually("the canary at full scale", func(context.Context) bool {
				canary = s.pods()[imageV2]
				return len(canary) == 4
			})
			s.waitReady()
			if diff := cmp.Diff(map[string][]string{imageV2: canary}, s.pods()); diff != "" {
				t.Errorf("the pods are not the canary's (-canary +now):\n%s", diff)
			}
			s.checkGivenBack()
			s.checkOwners(2)
			if d := s.deployment(); d.Spec.Paused == guarded || d.Status.UpdatedReplicas != 4 {
				t.Errorf("paused %v, status %+v", d.Spec.Paused, d.Status)
			}
		})
	}
}

// checkOwners: so many ReplicaSets are left, and every one is the Deployment's.
func (s *scene) checkOwners(n int) {
	s.Helper()
	s.eventually(fmt.Sprintf("there are %d ReplicaSets of the Deployment and no others", n), func(context.Context) bool {
		sets := s.replicaSets()
		return len(sets) == n && !slices.ContainsFunc(sets, func(rs appsv1.ReplicaSet) bool {
			c := metav1.GetControllerOf(&rs)
			return c == nil || c.Kind != "Deployment"
		})
	})
}

// The operator sees the whole cluster, as the chart has it do; so it is not parallel to others.
func TestABadCanaryIsRolledBackAndTheDeploymentIsHeldUntilItsTemplateChanges(t *testing.T) {
	m := newMeasurements()
	m.badCanary = true
	s := newScene(t)
	s.create(deployment("website", 4), service("website"), newRollout())
	s.serveProxies()
	s.startOperator(m, everywhere)
	s.waitReady()
	before := s.pods()
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonRolledBack)
	if diff := cmp.Diff(before, s.pods()); diff != "" {
		t.Errorf("pods changed (-before +after):\n%s", diff)
	}
	s.checkGivenBack()
	if !s.deployment().Spec.Paused {
		t.Error("the Deployment is not held on the rejected template")
	}
	s.setImage(imageV1)
	s.waitReady()
	if diff := cmp.Diff(before, s.pods()); diff != "" {
		t.Errorf("pods changed (-before +after):\n%s", diff)
	}
	s.checkOwners(1)
}

func TestAnEarlierTemplateIsReleasedAgainWithoutASecondRoll(t *testing.T) {
	t.Parallel()
	s := website(t, newMeasurements())
	s.setImage(imageV2)
	s.waitReady()
	s.setImage(imageV1)
	var canary []string
	s.eventually("the canary at full scale", func(context.Context) bool {
		canary = s.pods()[imageV1]
		return len(canary) == 4
	})
	s.waitReady()
	if diff := cmp.Diff(map[string][]string{imageV1: canary}, s.pods()); diff != "" {
		t.Errorf("the pods are not the canary's (-canary +now):\n%s", diff)
	}
	s.checkOwners(2)
}

func TestACrashOfTheOperatorDuringAReleaseChangesNothingInTheOutcome(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(deployment("website", 4), service("website"), newRollout())
	s.serveProxies()
	m := newMeasurements()
	o := s.startOperator(m)
	s.waitReady()
	s.setImage(imageV2)
	for _, stage := range []string{v1alpha1.ReasonPreparing, v1alpha1.ReasonWaitingForPods, v1alpha1.ReasonWaitingForTraffic, v1alpha1.ReasonPromoting, v1alpha1.ReasonCleaningUp} {
		s.eventually(stage+" or later", func(context.Context) bool {
			_, reason, _ := ready(s.rollout())
			return reason == stage || s.stableImage() == imageV2
		})
		o.stop(t)
		o = s.startOperator(newMeasurements())
	}
	s.waitReady()
	if pods := s.pods(); len(pods) != 1 || len(pods[imageV2]) != 4 {
		t.Errorf("pods %v", pods)
	}
	s.checkGivenBack()
	s.checkOwners(2)
}

// GitOps tools prune in the foreground: the garbage collector then removes what
// the Rollout owns before its finalizer is done.
func TestDeletingTheRolloutInTheForegroundInTheMiddleOfACanaryGivesEverythingBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create(deployment("website", 4), service("website"), newRollout(v1alpha1.Step{Weight: 20, Hold: "1h"}))
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.waitReady()
	before := s.pods()
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonHolding)
	if err := admin.Delete(t.Context(), s.rollout(), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	s.eventually("the Rollout is gone", func(ctx context.Context) bool {
		// The pods are read first: a weight that is in effect after they are gone was
		// in effect without them.
		gone := len(s.pods()[imageV2]) == 0
		for _, b := range s.splitStatus().Backends {
			if b.Service == "website-canary" && b.Weight > 0 && gone {
				t.Errorf("weight %d is in effect, and the canary's pods are gone", b.Weight)
			}
		}
		return apierrors.IsNotFound(admin.Get(ctx, s.key("website"), &v1alpha1.Rollout{}))
	})
	if diff := cmp.Diff(before, s.pods()); diff != "" {
		t.Errorf("pods changed (-before +after):\n%s", diff)
	}
	s.checkGivenBack()
	d := s.deployment()
	if _, marked := d.Annotations[v1alpha1.AnnotationRollout]; marked || !d.Spec.Paused {
		t.Errorf("marked %v, paused %v: an unverified template must not roll", marked, d.Spec.Paused)
	}
}
