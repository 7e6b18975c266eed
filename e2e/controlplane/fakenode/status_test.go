// SPDX-License-Identifier: Apache-2.0

package fakenode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func makePod(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
}

func findReady(t *testing.T, status corev1.PodStatus) corev1.PodCondition {
	t.Helper()
	for _, condition := range status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition
		}
	}
	t.Fatal("the status has no condition Ready")
	return corev1.PodCondition{}
}

func TestComputeStatus(t *testing.T) {
	for _, test := range []struct {
		name      string
		delay     time.Duration
		age       time.Duration
		wantReady corev1.ConditionStatus
		wantWait  time.Duration
	}{
		{name: "without a delay a pod is ready at once", wantReady: corev1.ConditionTrue},
		{name: "before its delay has passed a pod is not ready", delay: 3 * time.Second, age: time.Second, wantReady: corev1.ConditionFalse, wantWait: 2 * time.Second},
		{name: "when its delay has passed a pod is ready", delay: 3 * time.Second, age: 3 * time.Second, wantReady: corev1.ConditionTrue},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := makePod(nil)
			first, _ := computeStatus(pod, "10.250.0.2", test.delay, start)
			pod.Status = first
			status, wait := computeStatus(pod, "10.250.0.2", test.delay, start.Add(test.age))
			if got := findReady(t, status).Status; got != test.wantReady {
				t.Errorf("ready: %s, want %s", got, test.wantReady)
			}
			if wait != test.wantWait {
				t.Errorf("look again in %s, want %s", wait, test.wantWait)
			}
			if status.PodIP != "10.250.0.2" || status.Phase != corev1.PodRunning {
				t.Errorf("address %q and phase %q, want 10.250.0.2 and Running", status.PodIP, status.Phase)
			}
		})
	}
}

func TestReadinessThatIsTakenAwayChangesTheTimeOfTheCondition(t *testing.T) {
	pod := makePod(nil)
	pod.Status, _ = computeStatus(pod, "10.250.0.2", 0, start)
	later := start.Add(time.Minute)

	same, _ := computeStatus(pod, "10.250.0.2", 0, later)
	if got := findReady(t, same).LastTransitionTime.Time; !got.Equal(start) {
		t.Errorf("the condition did not change but its time went from %s to %s", start, got)
	}
	pod.Labels = map[string]string{FlappingLabel: "1m"}
	changed, _ := computeStatus(pod, "10.250.0.2", 0, later)
	if got := findReady(t, changed).LastTransitionTime.Time; !got.Equal(later) {
		t.Errorf("the condition changed at %s but its time is %s", later, got)
	}
}

func TestAPodThatFlapsCrashesAgainAndAgain(t *testing.T) {
	pod := makePod(map[string]string{FlappingLabel: "400ms"})
	pod.Status, _ = computeStatus(pod, "10.250.0.2", time.Second, start)
	for _, test := range []struct {
		age       time.Duration
		wantReady corev1.ConditionStatus
		restarts  int32
		wantWait  time.Duration
	}{
		{age: 500 * time.Millisecond, wantReady: corev1.ConditionFalse, wantWait: 500 * time.Millisecond},
		{age: 1000 * time.Millisecond, wantReady: corev1.ConditionTrue, wantWait: 400 * time.Millisecond},
		{age: 1300 * time.Millisecond, wantReady: corev1.ConditionTrue, wantWait: 100 * time.Millisecond},
		{age: 1400 * time.Millisecond, wantReady: corev1.ConditionFalse, restarts: 1, wantWait: 400 * time.Millisecond},
		{age: 1900 * time.Millisecond, wantReady: corev1.ConditionTrue, restarts: 1, wantWait: 300 * time.Millisecond},
		{age: 2200 * time.Millisecond, wantReady: corev1.ConditionFalse, restarts: 2, wantWait: 400 * time.Millisecond},
	} {
		status, wait := computeStatus(pod, "10.250.0.2", time.Second, start.Add(test.age))
		ready, restarts := findReady(t, status).Status, status.ContainerStatuses[0].RestartCount
		if ready != test.wantReady || restarts != test.restarts || wait != test.wantWait {
			t.Errorf("after %s: ready %s, %d restarts, look again in %s; want %s, %d, %s",
				test.age, ready, restarts, wait, test.wantReady, test.restarts, test.wantWait)
		}
	}
}
