// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/config/golden"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// released is a Rollout at the gate of its first step.
func released() *v1alpha1.Rollout {
	observed := int32(20)
	next := metav1.NewTime(noon)
	ro := &v1alpha1.Rollout{Status: v1alpha1.RolloutStatus{
		Stable: &v1alpha1.VersionStatus{Revision: "5d4f8c7b9", Replicas: 4, Ready: 4},
		Canary: &v1alpha1.VersionStatus{Revision: "657bc99986", Replicas: 2, Ready: 1},
		Step:   &v1alpha1.StepStatus{Index: 0, Of: 2, Summary: "1/2", Weight: 20},
		Weight: &v1alpha1.WeightStatus{Requested: 20, Observed: &observed},
		Analysis: &v1alpha1.AnalysisStatus{
			Verdict: "Inconclusive", Reason: "MoreNeeded", Message: "Canary fails as often as stable.",
			Evidence: "0.4", Threshold: "100", CanaryRequests: 600, CanaryFailures: 3, StableRequests: 2400, StableFailures: 11,
		},
		NextTransitionTime: &next,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForApproval,
			Message: "Step 1/2: 20 % of the traffic goes to the canary,\nand the step waits for approval.",
		}},
	}}
	ro.Name, ro.Namespace = "website", "shop"
	return ro
}

func replicaSet(revision string, ready, replicas int32) appsv1.ReplicaSet {
	set := appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{ReadyReplicas: ready, Replicas: replicas}}
	set.Name, set.UID = "website-"+revision, types.UID(revision)
	set.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: revision}
	return set
}

func pod(revision, name string, status corev1.ContainerStatus) corev1.Pod {
	controls := true
	p := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	p.Name = "website-" + revision + "-" + name
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: types.UID(revision), Controller: &controls}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{status}}
	return p
}

func TestTree(t *testing.T) {
	crashing := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	terminating := pod("5d4f8c7b9", "zzzzz", corev1.ContainerStatus{Ready: true})
	now := metav1.NewTime(noon)
	terminating.DeletionTimestamp = &now
	idle := &v1alpha1.Rollout{}
	idle.Name = "new"
	rejected := released()
	rejected.Status.Analysis, rejected.Status.Step, rejected.Status.Weight, rejected.Status.NextTransitionTime = nil, nil, nil, nil
	rejected.Status.Decision = &v1alpha1.Decision{Revision: "657bc99986", Action: v1alpha1.ActionRollBack}
	rejected.Status.Conditions[0].Reason, rejected.Status.Conditions[0].Message = v1alpha1.ReasonRolledBack, "Revision 657bc99986 was rolled back."
	for name, snapshot := range map[string]rolloutview.Snapshot{
		"gate": {
			Rollout:     released(),
			ReplicaSets: []appsv1.ReplicaSet{replicaSet("657bc99986", 1, 2), replicaSet("5d4f8c7b9", 4, 4)},
			Pods: []corev1.Pod{
				pod("5d4f8c7b9", "abcde", corev1.ContainerStatus{Ready: true}), terminating,
				pod("657bc99986", "fghij", corev1.ContainerStatus{Ready: true}), pod("657bc99986", "klmno", crashing),
			},
		},
		"rolledback": {Rollout: rejected},
		"unseen":     {Rollout: idle},
	} {
		golden.Check(t, filepath.Join("testdata", name+".txt"), rolloutview.Tree(snapshot))
	}
}

func TestDecide(t *testing.T) {
	first, third := int32(0), int32(2)
	with := func(change func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
		ro := released()
		change(ro)
		return ro
	}
	rolledBack := with(func(ro *v1alpha1.Rollout) {
		ro.Status.Decision = &v1alpha1.Decision{Revision: "657bc99986", Action: v1alpha1.ActionRollBack}
	})
	promoting := with(func(ro *v1alpha1.Rollout) {
		ro.Status.Decision = &v1alpha1.Decision{Revision: "657bc99986", Action: v1alpha1.ActionPromote}
	})
	before := with(func(ro *v1alpha1.Rollout) {
		ro.Spec.Control = &v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlAbort, By: "jane"}
		ro.Status.Control = &v1alpha1.ControlStatus{Control: *ro.Spec.Control, Ignored: "its step is over"}
	})
	tests := []struct {
		name    string
		rollout *v1alpha1.Rollout
		wish    rolloutview.Wish
		want    v1alpha1.Control
		err     string
	}{
		{"promote the present step", released(), rolloutview.Wish{Action: v1alpha1.ControlPromote, Reason: "good"}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlPromote, StepIndex: &first, Reason: "good"}, ""},
		{"skip a later step", released(), rolloutview.Wish{Action: v1alpha1.ControlSkip, Step: 3}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlSkip, StepIndex: &third}, ""},
		{"promote fully is about no step", released(), rolloutview.Wish{Action: v1alpha1.ControlPromoteFull, Step: 3}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlPromoteFull}, ""},
		{"the revision that was looked at", released(), rolloutview.Wish{Action: v1alpha1.ControlAbort, Revision: "657bc99986"}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlAbort}, ""},
		{"another revision by now", released(), rolloutview.Wish{Action: v1alpha1.ControlAbort, Revision: "old"}, v1alpha1.Control{}, "releases revision 657bc99986, not old"},
		{"nothing is released", &v1alpha1.Rollout{}, rolloutview.Wish{Action: v1alpha1.ControlAbort}, v1alpha1.Control{}, "nothing to abort"},
		{"retry a version that was rolled back", rolledBack, rolloutview.Wish{Action: v1alpha1.ControlRetry}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlRetry}, ""},
		{"retry one that was not", released(), rolloutview.Wish{Action: v1alpha1.ControlRetry}, v1alpha1.Control{}, "was not rolled back"},
		{"promote one that was rolled back", rolledBack, rolloutview.Wish{Action: v1alpha1.ControlPromote}, v1alpha1.Control{}, "rollout retry website releases it again"},
		{"abort one that is being promoted", promoting, rolloutview.Wish{Action: v1alpha1.ControlAbort}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlAbort}, ""},
		{"skip one that is being promoted", promoting, rolloutview.Wish{Action: v1alpha1.ControlSkip}, v1alpha1.Control{}, "is being promoted already"},
		{"the same once more", before, rolloutview.Wish{Action: v1alpha1.ControlAbort}, v1alpha1.Control{}, "decided before and did nothing (its step is over), and a decision is carried out once; give another --reason"},
		{"the same for another reason", before, rolloutview.Wish{Action: v1alpha1.ControlAbort, Reason: "again"}, v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlAbort, Reason: "again"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := rolloutview.Decide(test.rollout, test.wish)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("got %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	condition := func(kind string) *v1alpha1.Rollout {
		return &v1alpha1.Rollout{Status: v1alpha1.RolloutStatus{Conditions: []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}}}
	}
	if ready, failed := rolloutview.Settled(condition(v1alpha1.ConditionReady)); !ready || failed {
		t.Error("a Rollout that is ready is not settled")
	}
	if ready, failed := rolloutview.Settled(condition(v1alpha1.ConditionStalled)); ready || !failed {
		t.Error("a Rollout that is stalled has not failed")
	}
	late := condition(v1alpha1.ConditionReady)
	late.Generation = 2
	if ready, failed := rolloutview.Settled(late); ready || failed {
		t.Error("what was observed before the last change counts")
	}
}

func TestExplain(t *testing.T) {
	ro := released()
	ro.Generation = 3
	ro.Spec.Paused = true
	ro.Status.Conditions = append(ro.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue},
		metav1.Condition{Type: v1alpha1.ConditionTrafficRouted, Status: metav1.ConditionFalse, Message: "Two proxies have not confirmed it."})
	ro.Status.Control = &v1alpha1.ControlStatus{Control: v1alpha1.Control{Action: v1alpha1.ControlSkip, Revision: "old"}, Ignored: "its revision is gone"}
	ro.Status.Interventions = []v1alpha1.Intervention{{Action: v1alpha1.ControlPromote, By: "jane", Reason: "good", Time: metav1.NewMicroTime(noon)}}
	got := rolloutview.Explain(ro, []corev1.Event{{Reason: "ReleaseStarted", Message: "Revision 657bc99986 is being released", LastTimestamp: metav1.NewTime(noon)}})
	want := []string{
		"Step 1/2: 20 % of the traffic goes to the canary,\nand the step waits for approval.",
		"Serin has not looked at the last change of the spec yet.",
		"It does not go on by itself: a user has to change something.",
		"spec.paused stops new steps; kubectl traffic rollout resume website lets it go on.",
		"The traffic is not where it should be: Two proxies have not confirmed it.",
		"The analysis says Inconclusive (MoreNeeded): Canary fails as often as stable.",
		"If nothing else happens, it goes on at 2026-03-01T12:00:00Z.",
		"The decision Skip about revision old did nothing: its revision is gone",
		"Promote was decided by jane at 2026-03-01T12:00:00Z: good.",
		"2026-03-01T12:00:00Z ReleaseStarted: Revision 657bc99986 is being released",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
