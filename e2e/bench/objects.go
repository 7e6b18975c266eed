// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
)

const (
	// appPrefix and appNameLength make names of apps that are found again at the
	// beginning of the names of everything that is made for them.
	appPrefix     = "app-"
	appNameLength = len(appPrefix) + 4
	// proxyPrefix begins the names of what is made for proxies.
	proxyPrefix = "serin-proxy-"
	// canaryOwner is the kind that controls a canary until it is promoted.
	canaryOwner = "Service"

	// fleetLabel is on the objects of one measurement.
	fleetLabel = "serin.dev/bench"

	imageV1 = "registry.example.com/team/product/app:1.0.0"
	imageV2 = "registry.example.com/team/product/app:1.1.0"
)

// makeApp builds what a team keeps in Git, as kubectl apply leaves it.
func (f fleet) makeApp(a app) []client.Object {
	labels := map[string]string{"app.kubernetes.io/name": a.name, "app.kubernetes.io/part-of": "product"}
	meta := metav1.ObjectMeta{Name: a.name, Namespace: a.namespace, Labels: map[string]string{fleetLabel: f.name}}
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: *meta.DeepCopy(),
		Spec: appsv1.DeploymentSpec{
			Replicas: &f.replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: makePodSpec()},
		},
	}
	s := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: *meta.DeepCopy(),
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
	r := &v1alpha1.Rollout{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Rollout"}, ObjectMeta: *meta.DeepCopy(),
		Spec: v1alpha1.RolloutSpec{
			WorkloadRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: a.name},
			Service:     a.name, Router: f.router,
		},
	}
	for _, w := range Weights {
		r.Spec.Strategy.Steps = append(r.Spec.Strategy.Steps, v1alpha1.Step{Weight: w, Hold: v1alpha1.Duration(f.hold.String())})
	}
	if f.router != v1alpha1.RouterNone {
		// No traffic flows through stand-ins, so nothing can be measured.
		r.Spec.Analysis = &v1alpha1.Analysis{OnInconclusive: v1alpha1.InconclusivePromote}
	}
	objects := []client.Object{d, s, r}
	for _, o := range objects {
		applied(o)
	}
	return objects
}

// makePodSpec is a container as teams write them, of about a kilobyte and a half.
func makePodSpec() corev1.PodSpec {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}}, PeriodSeconds: 5}
	}
	c := corev1.Container{
		Name: "app", Image: imageV1, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		ReadinessProbe: probe("/readyz"), LivenessProbe: probe("/healthz"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app", ReadOnly: true}},
	}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: fmt.Sprintf("https://service-%d.example.com/v1", i)})
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{c},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}},
		}}},
	}
}

// applied adds the annotation in which kubectl apply keeps the whole manifest.
func applied(o client.Object) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // the objects are made above
	}
	o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
}
