// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// ReduceStatus is what a cache keeps of the status of a Deployment: what is read of it. The rest
// changes several times while a Deployment is paused, adopts a ReplicaSet or replaces pods.
func ReduceStatus(s appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	out := appsv1.DeploymentStatus{
		ObservedGeneration: s.ObservedGeneration, Replicas: s.Replicas, UpdatedReplicas: s.UpdatedReplicas, AvailableReplicas: s.AvailableReplicas,
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			out.Conditions = append(out.Conditions, appsv1.DeploymentCondition{Type: c.Type, Status: c.Status, Message: c.Message})
		}
	}
	return out
}

// reduceStatus is what a cache keeps of the status of a ReplicaSet. Pods that are ready, and not yet
// available, are looked at: they may crash.
func reduceStatus(s appsv1.ReplicaSetStatus) appsv1.ReplicaSetStatus {
	out := appsv1.ReplicaSetStatus{ObservedGeneration: s.ObservedGeneration, Replicas: s.Replicas, ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas}
	for _, c := range s.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			out.Conditions = append(out.Conditions, appsv1.ReplicaSetCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return out
}

// Same reports whether two versions of a Deployment or ReplicaSet, as a cache keeps them, differ in
// nothing but the number of the version. Other kinds never are the same.
func Same(before, after any) bool {
	switch a := after.(type) {
	case *appsv1.Deployment:
		b, ok := before.(*appsv1.Deployment)
		return ok && sameDeployment(*b, a)
	case *reduced:
		b, ok := before.(*reduced)
		return ok && sameReduced(b, a)
	}
	return false
}

func sameDeployment(b appsv1.Deployment, a *appsv1.Deployment) bool {
	b.ResourceVersion = a.ResourceVersion
	return apiequality.Semantic.DeepEqual(b.Status, a.Status) && apiequality.Semantic.DeepEqual(&b, a)
}

func sameReduced(b, a *reduced) bool {
	meta := b.ObjectMeta
	meta.ResourceVersion = a.ResourceVersion
	return apiequality.Semantic.DeepEqual(meta, a.ObjectMeta) && apiequality.Semantic.DeepEqual(b.status, a.status) &&
		b.owner == a.owner && b.template == a.template && apiequality.Semantic.DeepEqual(b.replicas, a.replicas) && maps.Equal(b.annotations, a.annotations) &&
		slices.Equal(b.labels, a.labels) && slices.Equal(b.templateLabels, a.templateLabels)
}
