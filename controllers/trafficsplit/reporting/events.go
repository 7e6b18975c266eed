// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Events are the events of a transition of the status. Waiting is no event: the
// condition says it, and it happens at every change of a weight. Weights that an
// annotation changes are no new generation, and get an event all the same. The weights of
// a Rollout's split are in its status.
func Events(split *splitv1.TrafficSplit, next splitv1.TrafficSplitStatus) []kit.Event {
	var events []kit.Event
	old, released := split.Status, split.Labels[v1alpha1.LabelRollout] != ""
	for _, c := range next.Conditions {
		before := meta.FindStatusCondition(old.Conditions, c.Type)
		worth := worthEvent(before, c) || isLive(c) && Weights(old.Backends) != Weights(next.Backends)
		if worth && (!released || !isLive(c)) {
			events = append(events, eventOf(c, next.Backends))
		}
	}
	return events
}

func worthEvent(before *metav1.Condition, c metav1.Condition) bool {
	if before == nil {
		// That all is well from the start needs no event.
		before = &metav1.Condition{Status: metav1.ConditionTrue, Reason: c.Reason}
	}
	changed := before.Status != c.Status || before.Reason != c.Reason
	switch {
	case c.Status == metav1.ConditionUnknown:
		return false
	case isLive(c):
		return changed || before.ObservedGeneration != c.ObservedGeneration
	case c.Type == splitv1.ConditionProgrammed && c.Reason != splitv1.ReasonProxyError:
		return false
	case c.Type == splitv1.ConditionTrafficDistributionProgrammed:
		// A started or stopped pod gets no event; Overridden gets that of the other condition.
		return changed && c.Reason == splitv1.ReasonZonesDiffer
	default:
		return changed || c.Status == metav1.ConditionFalse && before.Message != c.Message
	}
}

func isLive(c metav1.Condition) bool {
	return c.Type == splitv1.ConditionProgrammed && c.Status == metav1.ConditionTrue
}

func eventOf(c metav1.Condition, backends []splitv1.BackendStatus) kit.Event {
	e := kit.Event{Warning: c.Status == metav1.ConditionFalse, Reason: c.Reason, Message: c.Message}
	if isLive(c) {
		e.Message = "live weights: " + Weights(backends)
	}
	return e
}

// Weights are those of backends in one line.
func Weights(backends []splitv1.BackendStatus) string {
	parts := make([]string, 0, len(backends))
	for _, b := range backends {
		part := fmt.Sprintf("%s %d", b.Service, b.Weight)
		if len(b.Ports) > 0 {
			part = b.Service + " " + portWeights(b.Ports)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func portWeights(ports []splitv1.PortStatus) string {
	parts := make([]string, 0, len(ports))
	for _, p := range ports {
		parts = append(parts, fmt.Sprintf("%d/%s %d", p.Port, p.Protocol, p.Weight))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
