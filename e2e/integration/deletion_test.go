// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// saysReason matches the moment at which the Rollout says a reason.
func saysReason(reason string) func(client.Object) bool {
	return func(o client.Object) bool {
		ro, ok := o.(*v1alpha1.Rollout)
		if !ok {
			return false
		}
		c := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == reason
	}
}

// until releases v2 and waits for the moment at which the Rollout says a reason.
func until(reason string) func(*stage) { return untilEarly(reason, saysReason(reason)) }

// untilEarly releases v2 and waits for a moment of the first step.
func untilEarly(what string, match func(client.Object) bool) func(*stage) {
	return func(p *stage) {
		p.setImage(imageV2)
		p.await(p.scene, what, match)
	}
}

func canaryMade(o client.Object) bool {
	rs, ok := o.(*appsv1.ReplicaSet)
	return ok && rs.Spec.Template.Spec.Containers[0].Image == imageV2
}

func canaryAskedFor(o client.Object) bool {
	split, ok := o.(*splitv1.TrafficSplit)
	return ok && slices.ContainsFunc(split.Spec.Backends, func(b splitv1.Backend) bool {
		return b.Service == "website-canary" && b.Weight > 0
	})
}

func splitGoes(o client.Object) bool {
	split, ok := o.(*splitv1.TrafficSplit)
	return ok && !split.DeletionTimestamp.IsZero()
}

// untilLate is until, for what comes after the steps.
func untilLate(what string, match func(client.Object) bool) func(*stage) {
	return func(p *stage) {
		p.release()
		p.pass(time.Hour)
		p.held(1)
		p.pass(time.Hour)
		p.await(p.scene, what, match)
	}
}

func handedOver(o client.Object) bool {
	rs, ok := o.(*appsv1.ReplicaSet)
	if !ok || rs.Spec.Template.Spec.Containers[0].Image != imageV2 {
		return false
	}
	c := metav1.GetControllerOf(rs)
	return c == nil || c.Kind == "Deployment"
}

// stages are those at which a Rollout is deleted.
var stages = map[string]struct {
	reach    func(*stage)
	bad      bool
	promoted bool
}{
	"Preparing":              {reach: until(v1alpha1.ReasonPreparing)},
	"waiting for pods":       {reach: untilEarly("a canary is made", canaryMade)},
	"waiting for traffic":    {reach: untilEarly("traffic is asked for", canaryAskedFor)},
	"Holding in step 1":      {reach: (*stage).release},
	"Holding in step 2":      {reach: func(p *stage) { p.release(); p.pass(time.Hour); p.held(1) }},
	"Promoting":              {reach: untilLate("promoting", saysReason(v1alpha1.ReasonPromoting))},
	"Promoting, handed over": {reach: untilLate("handed over", handedOver), promoted: true},
	"CleaningUp":             {reach: untilLate("cleaning up", splitGoes), promoted: true},
	"RollingBack":            {reach: until(v1alpha1.ReasonRollingBack), bad: true},
	"RolledBack":             {reach: until(v1alpha1.ReasonRolledBack), bad: true},
}

func TestDeletingTheRolloutAtAnyStageGivesEverythingBack(t *testing.T) {
	t.Parallel()
	for name, test := range stages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, func(c *cast) { c.measured.badCanary = test.bad })
			want := map[string][]string{imageV1: p.pods()[imageV1]}
			test.reach(p)
			if test.promoted {
				want = map[string][]string{imageV2: p.pods()[imageV2]}
			}
			p.delete(p.rollout())
			p.eventually("the Rollout is gone", func(ctx context.Context) bool {
				return apierrors.IsNotFound(p.reader.Get(ctx, p.key("website"), &v1alpha1.Rollout{}))
			})
			p.checkWithoutRollout(want, test.promoted)
		})
	}
}

// A user who removes the finalizer by force gets everything back all the same, from an
// operator that is there, and from one that comes back later.
func TestARolloutThatGoesWithoutItsFinalizerGivesEverythingBack(t *testing.T) {
	t.Parallel()
	for name, test := range stages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, func(c *cast) { c.measured.badCanary = test.bad })
			want := map[string][]string{imageV1: p.pods()[imageV1]}
			test.reach(p)
			if test.promoted {
				want = map[string][]string{imageV2: p.pods()[imageV2]}
			}
			p.force()
			p.givenBack(want, test.promoted)
		})
	}
	t.Run("while the operator is away", func(t *testing.T) {
		t.Parallel()
		p := begin(t)
		want := map[string][]string{imageV1: p.pods()[imageV1]}
		p.release()
		p.operator.stop(t)
		p.force()
		p.operator = p.startOperator(p.time)
		p.givenBack(want, false)
	})
}

// force deletes the Rollout and removes its finalizer, as users do who don't wait.
func (p *stage) force() {
	p.Helper()
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "website"}}
	p.eventually("the Rollout is gone", func(ctx context.Context) bool {
		if err := errors.Join(client.IgnoreNotFound(admin.Delete(ctx, ro)), client.IgnoreNotFound(admin.Patch(ctx, ro, strip))); err != nil {
			p.Fatal(err)
		}
		return apierrors.IsNotFound(admin.Get(ctx, p.key("website"), &v1alpha1.Rollout{}))
	})
}

// givenBack waits until nothing is left of the release, and checks what is.
func (p *stage) givenBack(want map[string][]string, promoted bool) {
	p.Helper()
	p.eventually("nothing is left of the release", func(ctx context.Context) bool {
		_, marked := p.deployment().Annotations[v1alpha1.AnnotationRollout]
		return !marked && len(leftovers(ctx, admin, p.namespace)) == 0
	})
	p.checkWithoutRollout(want, promoted)
}

// checkWithoutRollout checks that the Service and the Deployment are as without Serin.
func (p *stage) checkWithoutRollout(want map[string][]string, promoted bool) {
	p.Helper()
	p.reader = admin
	if got := p.pods(); !sameUIDs(want, got) || len(got) != 1 {
		p.Errorf("pods %v, want %v", got, want)
	}
	p.checkGivenBack()
	d := p.deployment()
	if _, marked := d.Annotations[v1alpha1.AnnotationRollout]; marked || d.Spec.Paused == promoted {
		p.Errorf("marked %v, paused %v", marked, d.Spec.Paused)
	}
	if left := p.canaries(); len(left) > 0 {
		p.Errorf("left behind: %v", left)
	}
}

// canaries are the ReplicaSets that the Deployment does not control.
func (p *stage) canaries() (names []string) {
	p.Helper()
	for _, rs := range p.replicaSets() {
		if c := metav1.GetControllerOf(&rs); c == nil || c.Kind != "Deployment" {
			names = append(names, rs.Name)
		}
	}
	return names
}

func TestANamespaceThatIsDeletedInTheMiddleOfAReleaseGoes(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(*stage){
		"in a step":         (*stage).release,
		"while promoting":   untilLate("promoting", saysReason(v1alpha1.ReasonPromoting)),
		"while pods start":  untilEarly("a canary is made", canaryMade),
		"while cleaning up": untilLate("cleaning up", splitGoes),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t)
			reach(p)
			p.promise.keeps = 0 // everything goes, in any order
			p.deleteNamespace()
		})
	}
}

func TestADeploymentThatIsDeletedInTheMiddleOfAReleaseIsSaidAndANewOneIsStable(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.promise.keeps = 0 // its pods go with it
	p.delete(p.deployment())
	p.waitReason(v1alpha1.ReasonWorkloadNotFound)
	again := deployment("website", 4)
	again.Spec.Template.Spec.Containers[0].Image = imageV3
	p.create(again)
	p.waitReady()
	p.checkPods(imageV3, 4)
	p.checkGivenBack()
	if left := p.canaries(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if slices.Contains(p.outcomes(), v1alpha1.OutcomePromoted) {
		t.Errorf("outcomes %v", p.outcomes())
	}
}

func TestAServiceThatIsDeletedInTheMiddleOfAReleaseIsSaidAndStableServesTheNewOne(t *testing.T) {
	t.Parallel()
	p := begin(t)
	stable := p.pods()[imageV1]
	p.release()
	p.promise.writes = restoredWithin
	p.delete(p.get(t.Context(), "website", &corev1.Service{}))
	p.waitReason(v1alpha1.ReasonServiceNotFound)
	p.create(service("website"))
	p.checkRolledBack(v1alpha1.ReasonCanaryUnavailable, stable)
}

// deleteNamespace returns when the namespace is gone. Its controller looks again after
// half of the time that pods of proxies may take to end, which is a minute. Where nothing
// is left that has finalizers, a change of the namespace has it look at once.
func (s *scene) deleteNamespace() {
	s.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := admin.Delete(s.Context(), ns); err != nil {
		s.Fatal(err)
	}
	nudged := false
	s.eventually("the namespace is gone", func(ctx context.Context) bool {
		if !nudged && s.isEmpty(ctx) {
			nudged = true
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"serin.dev/test":"empty"}}}`))
			if err := client.IgnoreNotFound(admin.Patch(ctx, ns, patch)); err != nil {
				s.Fatal(err)
			}
		}
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(ns), ns))
	})
}

// isEmpty is whether no pod is left, and nothing that Serin has to finish.
func (s *scene) isEmpty(ctx context.Context) bool {
	s.Helper()
	n := 0
	for _, list := range []client.ObjectList{&corev1.PodList{}, &splitv1.TrafficSplitList{}, &v1alpha1.RolloutList{}} {
		if err := cached.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return false
		}
		n += meta.LenList(list)
	}
	return n == 0
}
