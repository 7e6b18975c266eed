// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	made "github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// restoredWithin is how many writes it may take until what another actor changed is restored.
const restoredWithin = 20

func editWeights(weights ...int32) func(*stage) {
	return func(p *stage) {
		change(p.scene, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
			for i, w := range weights {
				ts.Spec.Backends[i].Weight = w
			}
		})
	}
}

func editService(name string, f func(*corev1.Service)) func(*stage) {
	return func(p *stage) { change(p.scene, name, &corev1.Service{}, f) }
}

func editCanary(f func(*appsv1.ReplicaSet)) func(*stage) {
	return func(p *stage) { change(p.scene, p.canary().Name, &appsv1.ReplicaSet{}, f) }
}

func deleteService(name string) func(*stage) {
	return func(p *stage) { p.delete(p.get(p.Context(), name, &corev1.Service{})) }
}

func unmark(o metav1.Object) {
	delete(o.GetLabels(), v1alpha1.LabelRollout)
	delete(o.GetAnnotations(), v1alpha1.AnnotationRolloutUID)
}

func TestWhatSomebodyEditsInTheMiddleOfAReleaseIsRestoredAndNeverTakenForProgress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		act func(*stage)
		// breaks is whether the edit itself takes traffic away from pods.
		breaks bool
		// finish is whether the release is seen through: it is for the edits that took
		// the most to mend.
		finish bool
	}{
		"all weight is given to the canary":  {act: editWeights(0, 100), breaks: true},
		"the canary's weight is taken away":  {act: editWeights(100, 0)},
		"the weights become the next step's": {act: editWeights(40, 60), breaks: true},
		"a third backend is added to the split": {act: func(p *stage) {
			other := service("other")
			other.Spec.Selector = map[string]string{"app": "website"}
			p.create(other)
			change(p.scene, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) {
				ts.Spec.Backends = append(ts.Spec.Backends, splitv1.Backend{Service: "other", Weight: 50})
			})
		}},
		"the split is deleted": {finish: true, act: func(p *stage) { p.delete(p.split()) }},
		"the stable Service selects the canary": {breaks: true, finish: true, act: func(p *stage) {
			hash := p.canary().Labels[appsv1.DefaultDeploymentUniqueLabelKey]
			editService("website-stable", func(s *corev1.Service) { s.Spec.Selector[appsv1.DefaultDeploymentUniqueLabelKey] = hash })(p)
		}},
		"the canary's Service selects stable": {act: func(p *stage) {
			hash := p.rollout().Status.Stable.Revision
			editService("website-canary", func(s *corev1.Service) { s.Spec.Selector[appsv1.DefaultDeploymentUniqueLabelKey] = hash })(p)
		}},
		"the canary's Service loses its role":          {act: editService("website-canary", func(s *corev1.Service) { delete(s.Labels, v1alpha1.LabelRole) })},
		"the canary's ReplicaSet loses its mark":       {act: editCanary(func(rs *appsv1.ReplicaSet) { unmark(rs) })},
		"the canary's ReplicaSet loses its controller": {act: editCanary(func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }), finish: true},
		"the canary's Service selects every version": {act: editService("website-canary", func(s *corev1.Service) {
			delete(s.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey)
		})},
		"the port of the stable Service is changed": {act: editService("website-stable", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }), breaks: true},
		"the canary's Service loses its mark":       {act: editService("website-canary", func(s *corev1.Service) { unmark(s) })},
		"the split loses its mark": {act: func(p *stage) {
			change(p.scene, "website", &splitv1.TrafficSplit{}, func(ts *splitv1.TrafficSplit) { unmark(ts) })
		}},
		"the stable Service selects by one more key": {act: editService("website-stable", func(s *corev1.Service) { s.Spec.Selector["tier"] = "x" }), breaks: true},
		"the stable Service is deleted":              {act: deleteService("website-stable"), breaks: true},
		"the canary's Service is deleted":            {act: deleteService("website-canary"), breaks: true},
		"the canary's ReplicaSet is scaled up":       {act: editCanary(func(rs *appsv1.ReplicaSet) { *rs.Spec.Replicas = 3 })},
		"the root Service's selector is reset":       {act: editService("website", func(s *corev1.Service) { delete(s.Spec.Selector, traffic.LabelProxy) })},
		"the mark of the Deployment is removed": {act: func(p *stage) {
			change(p.scene, "website", &appsv1.Deployment{}, func(d *appsv1.Deployment) { delete(d.Annotations, v1alpha1.AnnotationRollout) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t)
			p.release()
			if test.breaks {
				p.promise.writes = restoredWithin
			}
			acted := p.moment()
			test.act(p)
			p.restored()
			for _, at := range p.steps(acted) {
				if !slices.Contains([]string{"0/20", "0/0", "none"}, at) {
					t.Errorf("the edit led to %s", at)
				}
			}
			if test.finish {
				p.finish(4)
			}
		})
	}
}

// firstStep is what Serin makes of everything in the first step.
type firstStep struct {
	Step, Weight, Replicas            int32
	InEffect, Proxied, Paused, Marked bool
	Backends                          []splitv1.Backend
	Versions                          []version
}

// version is the Service of one version.
type version struct {
	Role, Revision string
	Port           int32
	Marked         bool
}

// restored waits until everything is as Serin makes it in the first step.
func (p *stage) restored() {
	p.Helper()
	p.eventually("everything is restored", func(ctx context.Context) bool {
		if !p.programmed(0, 20) {
			return false
		}
		// The API server knows of the edit at once, a cache a little later.
		return p.restoredFor(ctx, p.reader) && p.restoredFor(ctx, admin)
	})
}

func (p *stage) restoredFor(ctx context.Context, reader client.Reader) bool {
	ro := &v1alpha1.Rollout{}
	err := reader.Get(ctx, p.key("website"), ro)
	if st := ro.Status; err != nil || st.Step == nil || st.Canary == nil || st.Stable == nil {
		return false
	}
	want := firstStep{
		InEffect: true, Weight: 20, Replicas: 1, Proxied: true, Paused: true, Marked: true,
		Backends: []splitv1.Backend{{Service: "website-stable", Weight: 80}, {Service: "website-canary", Weight: 20}},
		Versions: []version{
			{v1alpha1.RoleStable, ro.Status.Stable.Revision, 80, true},
			{v1alpha1.RoleCanary, ro.Status.Canary.Revision, 80, true},
		},
	}
	got := firstStep{Step: ro.Status.Step.Index, InEffect: ro.Status.Step.ProgrammedAt != nil}
	ts, root, d, sets := &splitv1.TrafficSplit{}, &corev1.Service{}, &appsv1.Deployment{}, &appsv1.ReplicaSetList{}
	if reader.Get(ctx, p.key("website"), ts) == nil && ts.DeletionTimestamp == nil && made.IsMarked(ts, ro) {
		got.Backends, got.Weight = ts.Spec.Backends, weightOf(ts.Status)
	}
	if reader.Get(ctx, p.key("website"), root) == nil {
		got.Proxied = root.Spec.Selector[traffic.LabelProxy] != ""
	}
	if reader.Get(ctx, p.key("website"), d) == nil {
		got.Paused, got.Marked = d.Spec.Paused, d.Annotations[v1alpha1.AnnotationRollout] == "website"
	}
	for _, role := range []string{v1alpha1.RoleStable, v1alpha1.RoleCanary} {
		svc := &corev1.Service{}
		if reader.Get(ctx, p.key("website-"+role), svc) == nil && svc.DeletionTimestamp == nil && len(svc.Spec.Ports) == 1 {
			got.Versions = append(got.Versions, version{
				svc.Labels[v1alpha1.LabelRole], svc.Spec.Selector[appsv1.DefaultDeploymentUniqueLabelKey], svc.Spec.Ports[0].Port, made.IsMarked(svc, ro),
			})
		}
	}
	canary := client.MatchingLabels{appsv1.DefaultDeploymentUniqueLabelKey: ro.Status.Canary.Revision}
	if reader.List(ctx, sets, client.InNamespace(p.namespace), canary) == nil && len(sets.Items) == 1 {
		got.Replicas = sets.Items[0].Status.Replicas
	}
	return cmp.Equal(want, got)
}

func TestACanaryThatIsScaledToZeroIsScaledBackAndItsReleaseGoesOn(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.loses(func() {
		editCanary(func(rs *appsv1.ReplicaSet) { *rs.Spec.Replicas = 0 })(p)
		// Its pod may stay: its controller may not have looked in between.
		p.eventually("the canary is scaled back", func(context.Context) bool { return *p.canary().Spec.Replicas == 1 })
	})
}

func TestARootServiceThatSelectsOtherPodsStopsTheReleaseWithAReasonUntilItIsUndone(t *testing.T) {
	t.Parallel()
	p := begin(t)
	p.release()
	p.promise.writes = restoredWithin // until the actor who did it has undone it
	acted := p.moment()
	editService("website", func(s *corev1.Service) { s.Spec.Selector["app"] = "other" })(p)
	p.waitReason(v1alpha1.ReasonInvalidService)
	p.pass(30 * time.Minute)
	p.checkStayed(acted)
	editService("website", func(s *corev1.Service) { s.Spec.Selector["app"] = "website" })(p)
	p.held(0)
	p.checkStayed(acted)
}
