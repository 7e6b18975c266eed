// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/podutils"
)

// maxWarnings is how many of the latest warnings are told.
const maxWarnings = 15

// Explain reads a cluster and says why pods don't run. What can't be read is said, too.
func Explain(ctx context.Context, core kubernetes.Interface) string {
	var text strings.Builder
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&text, "nodes: %v\n", err)
	} else {
		text.WriteString(describeNodes(nodes.Items))
	}
	pods, err := core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&text, "pods: %v\n", err)
	} else {
		text.WriteString(describePods(pods.Items))
	}
	events, err := core.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	if err != nil {
		fmt.Fprintf(&text, "events: %v\n", err)
	} else {
		text.WriteString(describeWarnings(events.Items))
	}
	return text.String()
}

// pressures are the conditions under which a node takes no more pods.
var pressures = []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure}

// Pressure is why a node takes no more pods, or "".
func Pressure(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Status == corev1.ConditionTrue && slices.Contains(pressures, c.Type) {
			return fmt.Sprintf("%s: %s", c.Type, c.Message)
		}
	}
	return ""
}

func describeNodes(nodes []corev1.Node) string {
	var text strings.Builder
	for _, node := range nodes {
		state := "ready"
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				state = fmt.Sprintf("not ready: %s: %s", c.Reason, c.Message)
			}
		}
		if pressure := Pressure(&node); pressure != "" {
			state += ", " + pressure
		}
		fmt.Fprintf(&text, "node %s is %s\n", node.Name, state)
	}
	if len(nodes) == 0 {
		return "there is no node\n"
	}
	return text.String()
}

// describePods tells of the pods that are not ready.
func describePods(pods []corev1.Pod) string {
	var text strings.Builder
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || podutils.IsPodReady(&pod) {
			continue
		}
		fmt.Fprintf(&text, "pod %s/%s is %s%s\n", pod.Namespace, pod.Name, pod.Status.Phase, why(&pod))
	}
	return text.String()
}

func why(pod *corev1.Pod) string {
	var parts []string
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			parts = append(parts, c.Reason+": "+c.Message)
		}
	}
	if pod.Status.Message != "" {
		parts = append(parts, pod.Status.Reason+": "+pod.Status.Message)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case status.State.Waiting != nil:
			parts = append(parts, fmt.Sprintf("%s waits: %s %s", status.Name, status.State.Waiting.Reason, status.State.Waiting.Message))
		case status.State.Terminated != nil:
			parts = append(parts, fmt.Sprintf("%s ended with %d: %s %s", status.Name, status.State.Terminated.ExitCode, status.State.Terminated.Reason, status.State.Terminated.Message))
		case !status.Ready:
			parts = append(parts, status.Name+" runs and is not ready")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}

// describeWarnings tells of the latest warnings, the last one last.
func describeWarnings(events []corev1.Event) string {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return cmp.Compare(last(a).UnixNano(), last(b).UnixNano()) })
	if len(events) > maxWarnings {
		events = events[len(events)-maxWarnings:]
	}
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintf(&text, "warning of %s, %s %s/%s: %s: %s\n", last(e).UTC().Format(time.TimeOnly),
			e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return text.String()
}

func last(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
