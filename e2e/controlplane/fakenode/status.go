// SPDX-License-Identifier: Apache-2.0

package fakenode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnreadyLabel on a pod, with the value "true", keeps it from becoming ready, and takes
// its readiness away when it is added later.
const UnreadyLabel = "serin.dev/test-unready"

// computeStatus is what a kubelet would report of the pod at now. It also
// returns how long to wait before the answer changes by time alone, or 0.
func computeStatus(pod *corev1.Pod, address string, readyDelay time.Duration, now time.Time) (corev1.PodStatus, time.Duration) {
	started := metav1.NewTime(now)
	if pod.Status.StartTime != nil {
		started = *pod.Status.StartTime
	}
	wait := max(0, readyDelay-now.Sub(started.Time))
	ready := wait == 0 && pod.Labels[UnreadyLabel] != "true"

	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	status.StartTime = &started
	status.HostIP = nodeAddress
	status.HostIPs = []corev1.HostIP{{IP: nodeAddress}}
	status.PodIP = address
	status.PodIPs = []corev1.PodIP{{IP: address}}
	status.ContainerStatuses = computeContainers(pod.Spec.Containers, ready, started)
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReadyToStartContainers} {
		setCondition(&status, condition, true, started)
	}
	for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(&status, condition, ready, metav1.NewTime(now))
	}
	return status, wait
}

func computeContainers(containers []corev1.Container, ready bool, started metav1.Time) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(containers))
	for _, container := range containers {
		statuses = append(statuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image,
			Ready: ready, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return statuses
}

// setCondition keeps the time of a condition that does not change, as a kubelet does.
func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool, since metav1.Time) {
	value := corev1.ConditionFalse
	if holds {
		value = corev1.ConditionTrue
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != kind {
			continue
		}
		if condition.Status != value {
			condition.Status, condition.LastTransitionTime = value, since
		}
		return
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: since})
}
