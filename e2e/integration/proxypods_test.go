// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
	"github.com/serin-dev/serin/traffic"
)

// proxiesOf is the Deployment of the website's proxies.
func (s *scene) proxiesOf(ctx context.Context) *appsv1.Deployment {
	s.Helper()
	d, _ := s.get(ctx, traffic.ProxyName("website"), &appsv1.Deployment{}).(*appsv1.Deployment)
	return d
}

// replaced waits until all proxies are of a template of which a condition is true.
func (s *scene) replaced(what string, is func(corev1.PodTemplateSpec) bool) {
	s.Helper()
	s.eventually(what, func(ctx context.Context) bool {
		d := s.proxiesOf(ctx)
		n := *d.Spec.Replicas
		return is(d.Spec.Template) && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == n && d.Status.AvailableReplicas == n && d.Status.Replicas == n
	})
}

// A Rollout says how its proxies run, before a release and in the middle of one. The proxies are
// then replaced one at a time: at no moment does the Service have no endpoint, and the release
// stays where it is.
func TestARolloutSaysHowItsProxiesRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	pool := s.namespace
	startNodes(t, pool, pool+"-b")
	class := &schedulingv1.PriorityClass{Value: 1000}
	class.Name = pool
	if err := admin.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), class); err != nil {
			t.Error(err)
		}
	})
	ro := newRollout(v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual})
	ro.Spec.ProxyPods = &splitv1.ProxyPods{
		Replicas: ptr.To[int32](3), PriorityClassName: class.Name,
		Resources:        &splitv1.ProxyResources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		NodeSelector:     map[string]splitv1.LabelValue{fakenode.PoolLabel: splitv1.LabelValue(pool)},
		Tolerations:      []splitv1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Annotations:      map[string]splitv1.AnnotationValue{"example.com/cost-centre": "4711"},
		ImagePullSecrets: []string{"registry"},
	}
	s.create(deployment("website", 2), service("website"), ro)
	s.serveProxies()
	s.startOperator(newMeasurements())
	s.waitReady()
	s.setImage(imageV2)
	s.waitReason(v1alpha1.ReasonWaitingForApproval)

	d := s.proxiesOf(t.Context())
	pod := d.Spec.Template
	type set struct {
		Replicas                  int32
		Memory, CPU               string
		Priority, Pool, Annotated string
		Tolerations               []corev1.Toleration
		Secrets                   []corev1.LocalObjectReference
	}
	container := pod.Spec.Containers[0].Resources
	got := set{
		*d.Spec.Replicas, container.Limits.Memory().String(), container.Requests.Cpu().String(),
		pod.Spec.PriorityClassName, pod.Spec.NodeSelector[fakenode.PoolLabel], pod.Annotations["example.com/cost-centre"],
		pod.Spec.Tolerations, pod.Spec.ImagePullSecrets,
	}
	want := set{
		3, "1Gi", "50m", class.Name, pool, "4711",
		[]corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		[]corev1.LocalObjectReference{{Name: "registry"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Deployment of the proxies (-want +got):\n%s", diff)
	}
	stop := s.neverEmpty("website")
	defer stop()
	s.edit(func(spec *v1alpha1.RolloutSpec) { spec.ProxyPods.Annotations["example.com/cost-centre"] = "4712" })
	s.replaced("the proxies have the annotation that was changed", func(pod corev1.PodTemplateSpec) bool {
		return pod.Annotations["example.com/cost-centre"] == "4712"
	})
	s.waitReason(v1alpha1.ReasonWaitingForApproval)

	// Where no proxy finds a place, those that there are serve on.
	s.edit(func(spec *v1alpha1.RolloutSpec) { spec.ProxyPods.NodeSelector[fakenode.PoolLabel] = "nowhere" })
	s.eventually("another proxy waits for a node", func(ctx context.Context) bool {
		d := s.proxiesOf(ctx)
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.AvailableReplicas == 3
	})
	s.waitReason(v1alpha1.ReasonWaitingForApproval)
	s.decide(v1alpha1.ControlAbort)
	s.waitReason(v1alpha1.ReasonRolledBack)
	s.edit(func(spec *v1alpha1.RolloutSpec) { spec.ProxyPods = nil })
}

// Proxies that find no node keep the Service's traffic where it was, until an edit of the Rollout
// finds them one.
func TestAReleaseWhoseProxiesFindNoNodeWaitsForAnEdit(t *testing.T) {
	t.Parallel()
	p := begin(t, func(c *cast) {
		c.rollout.Spec.ProxyPods = &splitv1.ProxyPods{NodeSelector: map[string]splitv1.LabelValue{fakenode.PoolLabel: "nowhere"}}
	})
	p.setImage(imageV2)
	p.eventually("the proxies wait", func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		_, reason, _ := ready(p.rollout())
		return admin.Get(ctx, p.key(traffic.ProxyName("website")), d) == nil && d.Status.UnavailableReplicas == 2 && reason == v1alpha1.ReasonPreparing
	})
	p.edit(func(spec *v1alpha1.RolloutSpec) { spec.ProxyPods = nil })
	p.held(0)
}
