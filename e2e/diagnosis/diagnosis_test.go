// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name}
}

func TestAFullDiskIsNamedWithThePodsThatWaitForIt(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "serin-node"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "kubelet has disk pressure"},
	}}}
	pending := &corev1.Pod{ObjectMeta: object("pending"), Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "1 node(s) had untolerated taint(s)"},
	}}}
	evicted := &corev1.Pod{ObjectMeta: object("evicted"), Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource"}}
	waiting := &corev1.Pod{ObjectMeta: object("waiting"), Status: corev1.PodStatus{
		Phase: corev1.PodRunning,
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}},
			{Name: "side", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "done", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}},
		},
	}}
	well := &corev1.Pod{ObjectMeta: object("well"), Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	done := &corev1.Pod{ObjectMeta: object("done"), Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	got := Explain(t.Context(), fake.NewClientset(node, pending, evicted, waiting, well, done))
	want := `node serin-node is ready, DiskPressure: kubelet has disk pressure
pod shop/evicted is Failed: Evicted: The node was low on resource
pod shop/pending is Pending: Unschedulable: 1 node(s) had untolerated taint(s)
pod shop/waiting is Running: app waits: CrashLoopBackOff back-off; side runs and is not ready; done ended with 3: Error 
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheLatestWarningsAreToldInTheirOrder(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var events []corev1.Event
	for i := range maxWarnings + 2 {
		events = append(events, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web"}, Reason: "Failed",
			Message: strconv.Itoa(i), LastTimestamp: metav1.NewTime(start.Add(-time.Duration(i) * time.Second)),
		})
	}
	events[0].LastTimestamp, events[0].EventTime = metav1.Time{}, metav1.NewMicroTime(start)
	var want strings.Builder
	for i := maxWarnings - 1; i >= 0; i-- {
		fmt.Fprintf(&want, "warning of %s, Pod shop/web: Failed: %d\n", start.Add(-time.Duration(i)*time.Second).Format(time.TimeOnly), i)
	}
	if diff := cmp.Diff(want.String(), describeWarnings(events)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	core := fake.NewClientset()
	core.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the server is gone")
	})
	want := "nodes: the server is gone\npods: the server is gone\nevents: the server is gone\n"
	if diff := cmp.Diff(want, Explain(t.Context(), core)); diff != "" {
		t.Error(diff)
	}
	if got := Explain(t.Context(), fake.NewClientset()); got != "there is no node\n" {
		t.Error(got)
	}
}
