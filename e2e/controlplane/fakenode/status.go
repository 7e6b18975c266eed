// SPDX-License-Identifier: Apache-2.0

package fakenode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FlappingLabel on a pod, with a duration such as "400ms" as its value, makes its
// containers crash for ever: they are ready for that long, then end, and are ready
// again after as long.
const FlappingLabel = "serin.dev/test-flapping"

// computeStatus is what a kubelet would report of the pod at now. It also
// returns how long to wait before the answer changes by time alone, or 0.
func computeStatus(pod *corev1.Pod, address string, readyDelay time.Duration, now time.Time) (corev1.PodStatus, time.Duration) {
	started := metav1.NewTime(now)
	if pod.Status.StartTime != nil {
		started = *pod.Status.StartTime
	}
	age := now.Sub(started.Time)
	wait := max(0, readyDelay-age)
	ready, restarts := wait == 0, int32(0)
	if period, err := time.ParseDuration(pod.Labels[FlappingLabel]); ready && err == nil && period > 0 {
		ready, restarts, wait = flap(age-readyDelay, period)
	}

	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	status.StartTime = &started
	status.HostIP = nodeAddress
	status.HostIPs = []corev1.HostIP{{IP: nodeAddress}}
	status.PodIP = address
	status.PodIPs = []corev1.PodIP{{IP: address}}
	status.ContainerStatuses = computeContainers(pod.Spec.Containers, ready, started)
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].RestartCount = restarts
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReadyToStartContainers} {
		setCondition(&status, condition, true, started)
	}
	for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(&status, condition, ready, metav1.NewTime(now))
	}
	return status, wait
}

// flap says whether a container that crashes once a period is ready, how often it has
// crashed, and how long that stays so.
func flap(age, period time.Duration) (ready bool, crashes int32, wait time.Duration) {
	passed := int32(age / period) //nolint:gosec // a test does not last that long
	return passed%2 == 0, (passed + 1) / 2, period - age%period
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
