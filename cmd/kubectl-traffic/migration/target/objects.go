// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
)

// Limits of Serin's API.
const (
	LongestRollout = 52
	LongestService = 56
	LongestMetric  = 40
	MostSteps      = 50
	MostMetrics    = 8
	MostHooks      = 8
)

// left are annotations that belong to the other tool, or to kubectl.
var left = []string{"kubectl.kubernetes.io/", "rollout.argoproj.io/", "argo-rollouts.argoproj.io/", "deployment.kubernetes.io/", "notifications.argoproj.io/", "argocd.argoproj.io/tracking-id", "meta.helm.sh/"}

// Meta is the metadata of what is made from an object.
func Meta(from *source.Object, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: from.Namespace()}
	for key, value := range from.Field("metadata", "labels").Texts() {
		set(&m.Labels, key, value)
	}
	for key, value := range from.Field("metadata", "annotations").Texts() {
		set(&m.Annotations, key, value)
	}
	return m
}

func set(m *map[string]string, key, value string) {
	for _, prefix := range left {
		if strings.HasPrefix(key, prefix) {
			return
		}
	}
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// Rollout is one for a Deployment.
func Rollout(from *source.Object, deployment string) *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Rollout"}, ObjectMeta: Meta(from, from.Name())}
	ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: v1alpha1.KindDeployment, Name: deployment}
	if len(ro.Name) > LongestRollout {
		from.Field("metadata", "name").Fail("has %d characters: the name of a Rollout has at most %d, choose a shorter one", len(ro.Name), LongestRollout)
	}
	return ro
}

// Deployment is an empty one.
func Deployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta}
}

// Service is one that selects pods by labels.
func Service(meta metav1.ObjectMeta, selector map[string]string) *corev1.Service {
	return &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: selector}}
}

// Ports are those of containers, as ports of a Service.
func Ports(template corev1.PodTemplateSpec) (ports []corev1.ServicePort) {
	for _, c := range template.Spec.Containers {
		for _, p := range c.Ports {
			name := p.Name
			if name == "" {
				name = fmt.Sprintf("port-%d", p.ContainerPort)
			}
			port := corev1.ServicePort{Name: name, Port: p.ContainerPort, TargetPort: intstr.FromInt32(p.ContainerPort), Protocol: p.Protocol}
			if p.Name != "" {
				port.TargetPort = intstr.FromString(p.Name)
			}
			ports = append(ports, port)
		}
	}
	return ports
}

// Template is an AnalysisTemplate, or a ClusterAnalysisTemplate, which has no namespace.
func Template(kind string, meta metav1.ObjectMeta) *v1alpha1.AnalysisTemplate {
	if kind == v1alpha1.KindClusterAnalysisTemplate {
		meta.Namespace = ""
	}
	return &v1alpha1.AnalysisTemplate{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}, ObjectMeta: meta}
}

// RouteGroup is a set of requests.
func RouteGroup(meta metav1.ObjectMeta, matches ...specsv1.HTTPMatch) *specsv1.HTTPRouteGroup {
	return &specsv1.HTTPRouteGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: specsv1.GroupVersion.String(), Kind: "HTTPRouteGroup"}, ObjectMeta: meta,
		Spec: specsv1.HTTPRouteGroupSpec{Matches: matches},
	}
}

// Duration is a length of time as the API takes it, "" for none.
func Duration(d time.Duration) v1alpha1.Duration {
	if d == 0 {
		return ""
	}
	var out strings.Builder
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / unit.length; n > 0 {
			fmt.Fprintf(&out, "%d%s", n, unit.name)
			d %= unit.length
		}
	}
	return v1alpha1.Duration(out.String())
}

// Decimal is a number as the API takes it, with at most nine digits behind the point.
func Decimal(n float64) v1alpha1.Decimal {
	text := strconv.FormatFloat(n, 'f', 9, 64)
	return v1alpha1.Decimal(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// pins are the keys by which other tools have a Service select one version.
var pins = []string{"rollouts-pod-template-hash"}

// GivenService is a Service as it was given, without what belongs to the cluster or to
// another tool.
func GivenService(o *source.Object) *corev1.Service {
	svc := Service(Meta(o, o.Name()), nil)
	o.Field("spec").Decode(&svc.Spec)
	svc.Spec.ClusterIPs, svc.Spec.IPFamilies, svc.Spec.IPFamilyPolicy, svc.Spec.HealthCheckNodePort = nil, nil, nil, 0
	if svc.Spec.ClusterIP != corev1.ClusterIPNone {
		svc.Spec.ClusterIP = ""
	}
	for _, key := range pins {
		delete(svc.Spec.Selector, key)
	}
	return svc
}
