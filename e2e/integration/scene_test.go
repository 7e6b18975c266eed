// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// scene is a namespace with the Deployment, Service and Rollout of a website.
type scene struct {
	*testing.T
	namespace string
	// reader is what looks: the API server, or a cache where much is looked at.
	reader client.Reader
	// guarded is whether a policy holds the changed Deployments of the namespace.
	guarded bool
	// operators are those that were started, the stopped ones too.
	operators []*operator
}

// newScene makes a namespace as soon as the control plane keeps up with the tests that run.
func newScene(t *testing.T, label ...func(map[string]string)) *scene {
	t.Helper()
	if waited := tempo.Begin(); waited > 0 {
		t.Logf("the control plane did not keep up for %s", waited.Round(time.Second))
	}
	ns := &corev1.Namespace{}
	ns.GenerateName, ns.Labels = "website-", map[string]string{}
	for _, f := range label {
		f(ns.Labels)
	}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &scene{T: t, namespace: ns.Name, reader: admin, guarded: ns.Labels[labelGuarded] == "true"}
}

func (s *scene) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		o.SetNamespace(s.namespace)
		if err := admin.Create(s.Context(), o); err != nil {
			s.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "example.invalid/app:v1",
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				}}},
			},
		},
	}
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}

func newRollout(steps ...v1alpha1.Step) *v1alpha1.Rollout {
	const name = "website"
	if len(steps) == 0 {
		steps = []v1alpha1.Step{{Weight: 20}, {Weight: 60}}
	}
	return &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RolloutSpec{
			WorkloadRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Service:     name, Strategy: v1alpha1.Strategy{Steps: steps},
		},
	}
}

func (s *scene) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

func (s *scene) rollout() *v1alpha1.Rollout {
	s.Helper()
	ro := &v1alpha1.Rollout{}
	if err := s.reader.Get(s.Context(), s.key("website"), ro); err != nil {
		s.Fatal(err)
	}
	return ro
}

func (s *scene) deployment() *appsv1.Deployment {
	s.Helper()
	d := &appsv1.Deployment{}
	if err := s.reader.Get(s.Context(), s.key("website"), d); err != nil {
		s.Fatal(err)
	}
	return d
}

// setImage changes the template as kubectl set image does.
func (s *scene) setImage(image string) {
	s.Helper()
	s.patchTemplate(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
}

func (s *scene) patchTemplate(change func(*corev1.PodTemplateSpec)) {
	s.Helper()
	d := s.deployment()
	next := d.DeepCopy()
	change(&next.Spec.Template)
	if err := admin.Patch(s.Context(), next, client.StrategicMergeFrom(d)); err != nil {
		s.Fatal(err)
	}
	s.seen(next)
}

// seen waits until the reader knows of a change.
func (s *scene) seen(o client.Object) {
	s.Helper()
	known, _ := o.DeepCopyObject().(client.Object)
	s.eventually("the change is seen", func(ctx context.Context) bool {
		return s.reader.Get(ctx, client.ObjectKeyFromObject(o), known) == nil && versionOf(known) >= versionOf(o)
	})
}

// pods are the pods of the app, by image: names of proxies are left out.
func (s *scene) pods() map[string][]string {
	s.Helper()
	list := &corev1.PodList{}
	if err := s.reader.List(s.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels{"app": "website"}); err != nil {
		s.Fatal(err)
	}
	out := map[string][]string{}
	for _, p := range list.Items {
		if image := p.Spec.Containers[0].Image; image != "example.invalid/serin:test" && p.DeletionTimestamp == nil {
			out[image] = append(out[image], string(p.UID))
		}
	}
	for _, uids := range out {
		slices.Sort(uids)
	}
	return out
}

// eventually tries until there is no error, where there is no scene.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	var last error
	if !poll(t.Context(), func(context.Context) bool { last = try(); return last == nil }) {
		t.Fatalf("never: %s: %v", what, last)
	}
}

// eventually waits for a condition; the reason is asked for when it never holds.
func (s *scene) eventually(what string, condition func(context.Context) bool) {
	s.Helper()
	if !s.poll(condition) {
		ro := &v1alpha1.Rollout{}
		err := admin.Get(s.Context(), s.key("website"), ro)
		_, reason, message := ready(ro)
		s.Fatalf("never: %s; the Rollout says %s: %s (%v)\nstatus: %s\nsplit: %+v", what, reason, message, err, dump(ro.Status), s.splitStatus())
	}
}

func (s *scene) splitStatus() splitv1.TrafficSplitStatus {
	ts := &splitv1.TrafficSplit{}
	if err := s.reader.Get(s.Context(), s.key("website"), ts); err != nil {
		return splitv1.TrafficSplitStatus{}
	}
	return ts.Status
}

// waitReady waits until the Deployment's present template is stable.
func (s *scene) waitReady() {
	s.Helper()
	s.eventually("Ready", func(context.Context) bool {
		is, _, _ := ready(s.rollout())
		return is && s.stableImage() == s.deployment().Spec.Template.Spec.Containers[0].Image
	})
}

func (s *scene) waitReason(reason string) {
	s.Helper()
	s.eventually(reason, func(context.Context) bool { _, got, _ := ready(s.rollout()); return got == reason })
}

// stableImage is the image of the ReplicaSet that the status calls stable.
func (s *scene) stableImage() string {
	st := s.rollout().Status.Stable
	if st == nil {
		return ""
	}
	for _, rs := range s.replicaSets() {
		if rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == st.Revision {
			return rs.Spec.Template.Spec.Containers[0].Image
		}
	}
	return ""
}

func (s *scene) replicaSets() []appsv1.ReplicaSet {
	s.Helper()
	list := &appsv1.ReplicaSetList{}
	if err := s.reader.List(s.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels{"app": "website"}); err != nil {
		s.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(rs appsv1.ReplicaSet) bool {
		return rs.Spec.Template.Spec.Containers[0].Image == "example.invalid/serin:test"
	})
}

// checkGivenBack: nothing of a release is left.
func (s *scene) checkGivenBack() {
	s.Helper()
	for _, left := range leftovers(s.Context(), admin, s.namespace) {
		s.Error(left)
	}
	svc := &corev1.Service{}
	if err := admin.Get(s.Context(), s.key("website"), svc); err != nil {
		s.Fatal(err)
	}
	if len(svc.Spec.Selector) != 1 || svc.Spec.Selector["app"] != "website" {
		s.Errorf("the Service selects %v", svc.Spec.Selector)
	}
}

// leftovers are the objects of a release of the website that are there.
func leftovers(ctx context.Context, reader client.Reader, namespace string) (left []string) {
	proxy := func(o client.Object) client.Object { o.SetName(traffic.ProxyName("website")); return o }
	shared := func(o client.Object) client.Object { o.SetName(traffic.SharedProxyName); return o }
	backend := func(role string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: workload.BackendName("website", role)}}
	}
	for _, o := range []client.Object{
		&splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "website"}},
		backend(v1alpha1.RoleStable), backend(v1alpha1.RoleCanary),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: traffic.UnmatchedName("website")}},
		shared(&corev1.ServiceAccount{}), shared(&rbacv1.RoleBinding{}), proxy(&policyv1.PodDisruptionBudget{}),
		proxy(&appsv1.Deployment{}), proxy(&autoscalingv2.HorizontalPodAutoscaler{}),
	} {
		if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.GetName()}, o); !apierrors.IsNotFound(err) {
			left = append(left, fmt.Sprintf("%T %s is still there: %v", o, o.GetName(), err))
		}
	}
	var policies networkingv1.NetworkPolicyList
	if err := reader.List(ctx, &policies, client.InNamespace(namespace), client.HasLabels{traffic.LabelProxy}); err != nil {
		left = append(left, err.Error())
	}
	for i := range policies.Items {
		left = append(left, fmt.Sprintf("%T %s is still there", &policies.Items[i], policies.Items[i].Name))
	}
	return left
}

func dump(o any) string {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
