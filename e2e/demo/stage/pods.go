// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/serin-dev/serin/e2e/demo/story"
)

// proxyLabel is on the pods of Serin's proxies. They carry the labels of the
// website too, because the Service has to select them.
const proxyLabel = "serin.dev/proxy"

// describePods lists the website's own pods, sorted by name.
func describePods(pods []corev1.Pod, sets []appsv1.ReplicaSet) []story.Pod {
	owners := map[types.UID]story.Owner{}
	for i := range sets {
		owners[sets[i].UID] = ownerOf(&sets[i])
	}
	var described []story.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Labels["app"] != Name || pod.Labels[proxyLabel] != "" {
			continue
		}
		p := story.Pod{
			Name: pod.Name, UID: pod.UID, Version: versionOf(pod), Revision: pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
			Ready: podutils.IsPodReady(pod), Going: pod.DeletionTimestamp != nil,
		}
		if set := metav1.GetControllerOf(pod); set != nil {
			p.Owner = owners[set.UID]
		}
		described = append(described, p)
	}
	slices.SortFunc(described, func(a, b story.Pod) int { return strings.Compare(a.Name, b.Name) })
	return described
}

func ownerOf(set *appsv1.ReplicaSet) story.Owner {
	controller := metav1.GetControllerOf(set)
	if controller == nil {
		return story.OwnerUnknown
	}
	return story.Owner(controller.Kind)
}

// versionOf is what the pod's app answers with.
func versionOf(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "VERSION" {
				return variable.Value
			}
		}
	}
	return ""
}
