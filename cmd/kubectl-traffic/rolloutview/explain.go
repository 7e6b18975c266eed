// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Explain says in one sentence each why a Rollout is where it is. Events are given
// oldest first.
func Explain(ro *v1alpha1.Rollout, events []corev1.Event) []string {
	list := []string{Sentence(ro)}
	add := func(format string, args ...any) { list = append(list, oneLine(fmt.Sprintf(format, args...))) }
	if ro.Status.ObservedGeneration < ro.Generation {
		add("Serin has not looked at the last change of the spec yet.")
	}
	if meta.IsStatusConditionTrue(ro.Status.Conditions, v1alpha1.ConditionStalled) {
		add("It does not go on by itself: a user has to change something.")
	}
	if ro.Spec.Paused {
		add("spec.paused stops new steps; kubectl traffic rollout resume %s lets it go on.", ro.Name)
	}
	if c := routed(ro); c != "" {
		add("%s", c)
	}
	if a := ro.Status.Analysis; a != nil {
		add("The analysis says %s (%s): %s", a.Verdict, a.Reason, a.Message)
	}
	if next := ro.Status.NextTransitionTime; next != nil {
		add("If nothing else happens, it goes on at %s.", next.UTC().Format(time.RFC3339))
	}
	if c := ro.Status.Control; c != nil && c.Ignored != "" {
		add("The decision %s about revision %s did nothing: %s", c.Control.Action, c.Control.Revision, c.Ignored)
	}
	for _, i := range ro.Status.Interventions {
		add("%s was decided by %s at %s%s.", i.Action, orUser(i.By), i.Time.UTC().Format(time.RFC3339), because(i.Reason))
	}
	for _, e := range events {
		add("%s %s: %s", EventTime(e).UTC().Format(time.RFC3339), e.Reason, e.Message)
	}
	return list
}

// routed says where the traffic is, unless that is where it has to be.
func routed(ro *v1alpha1.Rollout) string {
	c := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionTrafficRouted)
	if c == nil || c.Status == metav1.ConditionTrue {
		return ""
	}
	return "The traffic is not where it should be: " + c.Message
}

func orUser(name string) string {
	if name == "" {
		return "a user"
	}
	return name
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// EventTime is when an event happened last.
func EventTime(e corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}
