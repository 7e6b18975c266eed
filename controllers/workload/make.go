// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// AnnotationDesiredReplicas is what the Deployment controller compares before it
// calls an adopted ReplicaSet saturated.
const AnnotationDesiredReplicas = "deployment.kubernetes.io/desired-replicas"

// AnnotationRevision is the number that the Deployment controller gives a ReplicaSet whose
// template is, or was, that of its Deployment.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// BackendName is the name of the Service of one version: "<root>-<role>".
func BackendName(root, role string) string { return root + "-" + role }

// Mark puts the name and the UID of a Rollout on an object that is made for it.
func Mark(o metav1.Object, ro *v1alpha1.Rollout) {
	o.SetLabels(withLabel(o.GetLabels(), v1alpha1.LabelRollout, ro.Name))
	o.SetAnnotations(withLabel(o.GetAnnotations(), v1alpha1.AnnotationRolloutUID, string(ro.UID)))
}

// IsMarked reports whether an object was made for the Rollout.
func IsMarked(o metav1.Object, ro *v1alpha1.Rollout) bool {
	return o.GetLabels()[v1alpha1.LabelRollout] == ro.Name && o.GetAnnotations()[v1alpha1.AnnotationRolloutUID] == string(ro.UID)
}

// CanaryController is what a canary's ReplicaSet names as its controller, so that
// the Deployment controller leaves it alone: the root Service. It is not the
// Rollout, because the garbage collector removes what an object controls as soon
// as that is deleted in the foreground, before its finalizer is done; without the
// root Service, the canary gets no requests.
func CanaryController(root *corev1.Service) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Service", Name: root.Name, UID: root.UID, Controller: &controller}
}

// MakeCanary builds the ReplicaSet of the canary: the Deployment's template and
// selector, with the label of the revision. The Deployment controller leaves it alone as
// long as another object is its controller and would adopt it without.
func MakeCanary(d *appsv1.Deployment, controller metav1.OwnerReference, revision string, replicas int32) *appsv1.ReplicaSet {
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, revision)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, revision)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            d.Name + "-" + revision,
			Namespace:       d.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     map[string]string{AnnotationDesiredReplicas: strconv.Itoa(int(*d.Spec.Replicas))},
			OwnerReferences: []metav1.OwnerReference{controller},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        &replicas,
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        template,
		},
	}
}

// Distribution is the traffic distribution of the Services that are made for a
// Rollout: its own, else that of the root Service; nil for none.
func Distribution(ro *v1alpha1.Rollout, root *corev1.Service) *string {
	if wanted := ro.Spec.TrafficDistribution; wanted != nil {
		value := string(*wanted)
		return &value
	}
	return root.Spec.TrafficDistribution
}

// MakeBackend builds the Service of one version of the root Service: the same
// ports and traffic settings, for the pods of the revision only, with the labels and
// annotations that monitors go by. The traffic distribution is that of the root Service
// until the caller says otherwise.
func MakeBackend(root *corev1.Service, selector map[string]string, role, revision string) *corev1.Service {
	declared := root.Spec.DeepCopy() // a cache may have the root, and what is made is written into
	s := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        BackendName(root.Name, role),
			Namespace:   root.Namespace,
			Labels:      withLabel(monitoredLabels(root), v1alpha1.LabelRole, role),
			Annotations: monitoredAnnotations(root),
		},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			Selector:              withLabel(selector, appsv1.DefaultDeploymentUniqueLabelKey, revision),
			IPFamilies:            declared.IPFamilies,
			IPFamilyPolicy:        declared.IPFamilyPolicy,
			InternalTrafficPolicy: declared.InternalTrafficPolicy,
			TrafficDistribution:   declared.TrafficDistribution,
		},
	}
	for _, p := range declared.Ports {
		p.NodePort = 0
		s.Spec.Ports = append(s.Spec.Ports, p)
	}
	return s
}

// BackendUpToDate reports whether a live backend Service means the same as the
// wanted one, whatever the API server has added.
func BackendUpToDate(live, want *corev1.Service) bool {
	return apiequality.Semantic.DeepEqual(live.Spec.Selector, want.Spec.Selector) &&
		apiequality.Semantic.DeepEqual(live.Spec.Ports, want.Spec.Ports) &&
		apiequality.Semantic.DeepEqual(live.Spec.TrafficDistribution, want.Spec.TrafficDistribution) &&
		subset(want.Labels, live.Labels) && subset(want.Annotations, live.Annotations)
}

func subset(part, whole map[string]string) bool {
	for k, v := range part {
		if got, found := whole[k]; !found || got != v {
			return false
		}
	}
	return true
}

func withLabel(m map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}

// DesiredReplicas is the scale of the Deployment that a ReplicaSet was told of,
// or -1 when it was told of none.
func DesiredReplicas(rs *appsv1.ReplicaSet) int32 {
	n, err := strconv.ParseInt(rs.Annotations[AnnotationDesiredReplicas], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}
