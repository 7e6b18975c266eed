// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// Version is stable or the canary, with its pods.
type Version struct {
	Role     string `json:"role"`
	Revision string `json:"revision"`
	// Weight is the live share of the traffic, such as "20%".
	Weight   string   `json:"weight"`
	Ready    int32    `json:"ready"`
	Replicas int32    `json:"replicas"`
	Images   []string `json:"images"`
	Pods     []Pod    `json:"pods"`
}

// Pod is one of a version.
type Pod struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"`
	Node     string `json:"node,omitempty"`
}

func versionsOf(s rolloutview.Snapshot) []Version {
	stableWeight, canaryWeight := rolloutview.Weights(s.Rollout)
	list := []Version{}
	for _, v := range []struct {
		role, weight string
		status       *v1alpha1.VersionStatus
	}{{v1alpha1.RoleStable, stableWeight, s.Rollout.Status.Stable}, {v1alpha1.RoleCanary, canaryWeight, s.Rollout.Status.Canary}} {
		if v.status == nil {
			continue
		}
		list = append(list, Version{
			Role: v.role, Weight: v.weight, Revision: v.status.Revision, Ready: v.status.Ready, Replicas: v.status.Replicas,
			Images: imagesOf(s.ReplicaSets, v.status.Revision), Pods: podsOf(s, v.status.Revision),
		})
	}
	return list
}

func imagesOf(sets []appsv1.ReplicaSet, revision string) []string {
	images := []string{}
	for i := range sets {
		if sets[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey] != revision {
			continue
		}
		for _, c := range sets[i].Spec.Template.Spec.Containers {
			if !slices.Contains(images, c.Image) {
				images = append(images, c.Image)
			}
		}
	}
	return images
}

// podsOf are the pods of a version that one of the ReplicaSets controls: pods of other
// workloads may have the same hash.
func podsOf(s rolloutview.Snapshot, revision string) []Pod {
	pods := []Pod{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != revision || !controlled(p, s.ReplicaSets) {
			continue
		}
		pod := Pod{Name: p.Name, State: rolloutview.PodState(p), Node: p.Spec.NodeName}
		for _, c := range p.Status.Conditions {
			pod.Ready = pod.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		for _, c := range p.Status.ContainerStatuses {
			pod.Restarts += c.RestartCount
		}
		pods = append(pods, pod)
	}
	return pods
}

func controlled(p *corev1.Pod, sets []appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return slices.ContainsFunc(sets, func(set appsv1.ReplicaSet) bool { return set.UID == o.UID })
	})
}
