// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const imageV3 = "example.invalid/app:v3"

// outcomes are those of the releases in the history, newest first.
func (p *stage) outcomes() (out []string) {
	for _, h := range p.rollout().Status.History {
		if h.Outcome != v1alpha1.OutcomeDeployed {
			out = append(out, h.Outcome)
		}
	}
	return out
}

// kubectl itself refuses to restart, or to undo, what is paused: nothing happens.
// Other clients just change the template, which begins a release of what they wrote.
func TestRestartAndUndoAreRefusedByKubectlInTheMiddleOfACanaryAndSupersedeItWhenForced(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	acted := p.moment()
	for _, verb := range []string{"restart", "undo"} {
		if out, err := p.kubectl("rollout", verb, "deployment/website"); err == nil {
			t.Errorf("kubectl rollout %s: %s", verb, out)
		}
	}
	p.checkStayed(acted)
	before := p.rollout().Status.Canary.Revision
	p.patchTemplate(func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z"}
	})
	p.eventually("the restarted version is in the first step", func(context.Context) bool {
		st := p.rollout().Status
		return st.Canary != nil && st.Canary.Revision != before && p.programmed(0, 20)
	})
	p.finish(4)
}

// In steady state kubectl may do both, if an admission policy guards the Deployment:
// it is not paused then.
func TestKubectlRolloutRestartAndUndoAreReleasedStepByStep(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) { c.guarded = true })
	p.eventually("the policy is in force", func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		if err := admin.Get(ctx, p.key("website"), d); err != nil {
			p.Fatal(err)
		}
		d.Spec.Template.Spec.Containers[0].Image = imageV3
		return admin.Update(ctx, d, client.DryRunAll) == nil && d.Spec.Paused
	})
	p.setImage(imageV2)
	p.finish(4)
	p.mustKubectl("rollout", "undo", "deployment/website")
	p.held(0)
	if n := len(p.pods()[imageV2]); n != 4 {
		t.Errorf("%d pods of v2 in the first step of the way back", n)
	}
	p.pass(time.Hour)
	p.held(1)
	p.pass(time.Hour)
	p.waitReady()
	p.checkPods(imageV1, 4)
	p.mustKubectl("rollout", "restart", "deployment/website")
	p.held(0)
	p.pass(time.Hour)
	p.held(1)
	p.pass(time.Hour)
	p.eventually("three releases ended", func(context.Context) bool { return len(p.outcomes()) == 3 })
	if got := p.outcomes(); slices.ContainsFunc(got, func(o string) bool { return o != v1alpha1.OutcomePromoted }) {
		t.Errorf("history: %v", got)
	}
	p.waitReady()
	p.checkPods(imageV1, 4)
	p.checkGivenBack()
}

// Somebody who un-pauses the Deployment either loses against Serin, which pauses it
// again before anything is rolled, or has said that the version is to be rolled out
// now: then it is, in full, and Serin says that it was not the one who did it.
func TestUnpausingTheDeploymentInTheMiddleOfACanaryIsUndoneOrRollsOutInFull(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.promise = promise{keeps: 3, writes: restoredWithin} // the Deployment's own maxUnavailable
	acted := p.moment()
	p.mustKubectl("rollout", "resume", "deployment/website")
	p.await(p.scene, "un-paused", func(o client.Object) bool {
		d, ok := o.(*appsv1.Deployment)
		return ok && d.Name == "website" && !d.Spec.Paused && versionOf(d) > acted
	})
	p.eventually("held again, as the Deployment controller knows", func(context.Context) bool {
		d := p.deployment()
		return versionOf(d) > acted && d.Spec.Paused && d.Status.ObservedGeneration == d.Generation
	})
	if !p.slipped() {
		p.checkStayed(acted)
		p.finish(4)
		return
	}
	p.waitReady()
	p.checkPods(imageV2, 4)
	p.checkGivenBack()
	p.eventually("it is said who did it", func(ctx context.Context) bool {
		return p.hasEvent(ctx, v1alpha1.ReasonUnguardedChange)
	})
	if slices.Contains(p.outcomes(), v1alpha1.OutcomePromoted) {
		t.Errorf("taken for a promotion: %v", p.outcomes())
	}
}

// Where the policy is in force, the write that would un-pause the Deployment in the middle of a
// release leaves it paused and managed, and the rest of the write is let through.
func TestAPausedDeploymentStaysPausedWhateverAnotherActorWrites(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) { c.guarded = true })
	p.release()
	p.mustKubectl("rollout", "resume", "deployment/website")
	d := p.deployment()
	rollout := d.Annotations[v1alpha1.AnnotationRollout]
	if !d.Spec.Paused || rollout == "" {
		t.Fatalf("resumed, managed by %q", rollout)
	}
	for name, annotations := range map[string]map[string]string{"with annotations": {"example.org/owner": "web"}, "without": nil} {
		d := &appsv1.Deployment{}
		change(p.scene, "website", d, func(d *appsv1.Deployment) {
			d.Spec.Paused, d.Annotations, d.Spec.RevisionHistoryLimit = false, annotations, new(int32(7))
		})
		if !d.Spec.Paused || d.Annotations[v1alpha1.AnnotationRollout] != rollout || *d.Spec.RevisionHistoryLimit != 7 || annotations != nil && d.Annotations["example.org/owner"] != "web" {
			t.Errorf("replaced %s: paused %v, annotations %v", name, d.Spec.Paused, d.Annotations)
		}
	}
	p.finish(4)
	d = &appsv1.Deployment{}
	change(p.scene, "website", d, func(d *appsv1.Deployment) {
		d.Annotations, d.Spec.Template.Spec.Containers[0].Image = nil, imageV3
	})
	if !d.Spec.Paused || d.Annotations[v1alpha1.AnnotationRollout] != rollout {
		t.Errorf("a new version in a Deployment that is replaced: paused %v, annotations %v", d.Spec.Paused, d.Annotations)
	}
	p.held(0)
	p.mustKubectl("annotate", "deployment/website", v1alpha1.AnnotationResume+"=true")
	d = p.deployment()
	d.Spec.Paused = false
	if err := admin.Update(t.Context(), d, client.DryRunAll); err != nil && !apierrors.IsConflict(err) || d.Spec.Paused {
		t.Errorf("with the annotation: %v, paused %v", err, d.Spec.Paused)
	}
}

// An abort sticks: whoever un-pauses the Deployment afterwards has not changed its template.
func TestUnpausingARejectedVersionDoesNotBringItBack(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) { c.measured.badCanary = true })
	p.setImage(imageV2)
	p.waitReason(v1alpha1.ReasonRolledBack)
	p.promise = promise{keeps: 3, writes: restoredWithin} // the Deployment's own maxUnavailable
	p.mustKubectl("rollout", "resume", "deployment/website")
	p.await(p.scene, "the Deployment is un-paused", func(o client.Object) bool {
		d, ok := o.(*appsv1.Deployment)
		return ok && d.Name == "website" && !d.Spec.Paused && d.Spec.Template.Spec.Containers[0].Image == imageV2
	})
	p.eventually("the Deployment is held again", func(context.Context) bool { return p.deployment().Spec.Paused })
	p.waitReason(v1alpha1.ReasonRolledBack)
	p.checkPods(imageV1, 4)
	if got := p.stableImage(); got != imageV1 {
		t.Errorf("stable is %s", got)
	}
}

// slipped is whether the Deployment has a ReplicaSet of v2.
func (p *stage) slipped() bool {
	p.Helper()
	return slices.ContainsFunc(p.replicaSets(), func(rs appsv1.ReplicaSet) bool {
		c := metav1.GetControllerOf(&rs)
		return c != nil && c.Kind == "Deployment" && rs.Spec.Template.Spec.Containers[0].Image == imageV2
	})
}

// hasEvent is whether the Rollout has an event with a reason.
func (p *stage) hasEvent(ctx context.Context, reason string) bool {
	p.Helper()
	list := &eventsv1.EventList{}
	if err := admin.List(ctx, list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == reason && e.Regarding.Kind == "Rollout" })
}

// A leader that does not know yet that it lost its lease goes on for a moment.
func TestTwoOperatorsAtTheSameTimeDoNoHarm(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.startOperator(p.time)
	p.setImage(imageV2)
	p.finish(4)
	if outcomes := p.outcomes(); len(outcomes) != 1 || outcomes[0] != v1alpha1.OutcomePromoted {
		t.Errorf("outcomes %v", outcomes)
	}
}
