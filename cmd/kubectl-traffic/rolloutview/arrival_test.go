// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

func podsOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "website"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

// deployed is a Deployment with an image, and a ReplicaSet for each image that ran.
func deployed(image string, ran ...string) Workload {
	w := Workload{Deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "website"}, Spec: appsv1.DeploymentSpec{Template: podsOf(image)}}}
	for _, image := range ran {
		rs := appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: podsOf(image)}}
		hash := strings.TrimPrefix(image, "web:") + "-hash"
		rs.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
		rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		w.ReplicaSets = append(w.ReplicaSets, rs)
	}
	return w
}

func status(ready bool, edit func(*v1alpha1.RolloutStatus)) *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "website", Generation: 3}}
	ro.Status.ObservedGeneration = 3
	condition := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Holding", Message: "It is under way."}
	if ready {
		condition.Status = metav1.ConditionTrue
	}
	ro.Status.Conditions = []metav1.Condition{condition}
	ro.Status.Stable = &v1alpha1.VersionStatus{Revision: "v1-hash"}
	edit(&ro.Status)
	return ro
}

func stableIs(revision string) func(*v1alpha1.RolloutStatus) {
	return func(s *v1alpha1.RolloutStatus) { s.Stable.Revision = revision }
}

// releasing is a release of a revision in its first step, or rolled back.
func releasing(revision string, rolledBack bool) func(*v1alpha1.RolloutStatus) {
	return func(s *v1alpha1.RolloutStatus) {
		s.Canary, s.Step = &v1alpha1.VersionStatus{Revision: revision}, &v1alpha1.StepStatus{Of: 2}
		if rolledBack {
			s.Step, s.Decision = nil, &v1alpha1.Decision{Revision: revision, Action: v1alpha1.ActionRollBack}
		}
	}
}

func stalled(s *v1alpha1.RolloutStatus) {
	s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue})
}

func TestArrived(t *testing.T) {
	nothing := func(*v1alpha1.RolloutStatus) {}
	for _, tt := range []struct {
		name    string
		rollout *v1alpha1.Rollout
		w       Workload
		wanted  Wanted
		want    Arrival
	}{
		{"ready for the version before", status(true, nothing), deployed("web:v2", "web:v1"), Wanted{}, Arrival{Message: "The release of the Deployment website has not begun"}},
		{"ready for the version before, whose ReplicaSet is made", status(true, nothing), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash"}},
		{"an image that is not applied yet", status(true, nothing), deployed("web:v1", "web:v1"), Wanted{Image: "web:v2"}, Arrival{Message: "No container of the Deployment website has the image web:v2 yet."}},
		{"an image that runs already", status(true, nothing), deployed("web:v1", "web:v1"), Wanted{Image: "web:v1"}, Arrival{Revision: "v1-hash", Stable: true, Message: "Revision v1-hash is stable."}},
		{"in a step", status(false, releasing("v2-hash", false)), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash"}},
		{"promoted, and cleaning up", status(false, stableIs("v2-hash")), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash"}},
		{"promoted", status(true, stableIs("v2-hash")), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash", Stable: true}},
		{"promoted, and the next one has begun", status(false, releasing("v2-hash", false)), deployed("web:v2", "web:v1", "web:v2"), Wanted{Revision: "v1-hash"}, Arrival{Revision: "v1-hash", Stable: true}},
		{"rolled back", status(false, releasing("v2-hash", true)), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash", Missed: true, Message: "Revision v2-hash does not become stable: It is under way."}},
		{"another took its place", status(false, releasing("v3-hash", false)), deployed("web:v3", "web:v1", "web:v2", "web:v3"), Wanted{Revision: "v2-hash"}, Arrival{Revision: "v2-hash", Missed: true}},
		{"the spec was changed and not observed", status(true, func(s *v1alpha1.RolloutStatus) { s.ObservedGeneration = 2 }), deployed("web:v1", "web:v1"), Wanted{}, Arrival{Revision: "v1-hash"}},
		{"no Deployment, being released", status(false, releasing("helm", false)), Workload{}, Wanted{Revision: "helm"}, Arrival{Revision: "helm"}},
		{"no Deployment and no revision", status(true, nothing), Workload{}, Wanted{}, Arrival{Message: "The workload is not a Deployment"}},
		{"the revert of a release that goes on", status(false, releasing("v2-hash", false)), deployed("web:v1", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v1-hash"}},
		{"a retry that is not observed", status(false, func(s *v1alpha1.RolloutStatus) { releasing("v2-hash", true)(s); s.ObservedGeneration = 2 }), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash"}},
		{"refused before it begins", status(false, stalled), deployed("web:v2", "web:v1", "web:v2"), Wanted{}, Arrival{Revision: "v2-hash", Refused: true}},
		{"no Deployment, and it ended", status(true, func(s *v1alpha1.RolloutStatus) { s.History = []v1alpha1.HistoryEntry{{Revision: "helm"}} }), Workload{}, Wanted{Revision: "helm"}, Arrival{Revision: "helm", Missed: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Arrived(tt.rollout, tt.w, tt.wanted)
			if got.Refused != tt.want.Refused || got.Revision != tt.want.Revision || got.Stable != tt.want.Stable || got.Missed != tt.want.Missed || !strings.HasPrefix(got.Message, tt.want.Message) || got.Message == "" {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}
