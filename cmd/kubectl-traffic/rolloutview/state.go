// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// unknown is shown where nothing is known.
const unknown = "-"

func ready(ro *v1alpha1.Rollout) *metav1.Condition {
	return meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
}

// Ready is whether a Rollout is: True, False or Unknown.
func Ready(ro *v1alpha1.Rollout) string {
	if c := ready(ro); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}

// State is the reason of the condition Ready.
func State(ro *v1alpha1.Rollout) string {
	if c := ready(ro); c != nil {
		return c.Reason
	}
	return unknown
}

// Sentence says what a Rollout does or waits for.
func Sentence(ro *v1alpha1.Rollout) string {
	if c := ready(ro); c != nil && c.Message != "" {
		return c.Message
	}
	return "Serin has not looked at it yet."
}

// Step is the step in progress, such as "2/3".
func Step(ro *v1alpha1.Rollout) string {
	if ro.Status.Step == nil {
		return unknown
	}
	return ro.Status.Step.Summary
}

// Weights are the shares of stable and canary that are live. Without a split there is no
// canary's share.
func Weights(ro *v1alpha1.Rollout) (stable, canary string) {
	w := ro.Status.Weight
	if w == nil || w.Observed == nil {
		return unknown, unknown
	}
	return fmt.Sprintf("%d%%", 100-*w.Observed), fmt.Sprintf("%d%%", *w.Observed)
}

// Settled is whether a Rollout is ready, or can't become so without a user's help.
// What was observed before the last change of the spec tells nothing.
func Settled(ro *v1alpha1.Rollout) (isReady, failed bool) {
	if ro.Status.ObservedGeneration < ro.Generation {
		return false, false
	}
	return meta.IsStatusConditionTrue(ro.Status.Conditions, v1alpha1.ConditionReady),
		meta.IsStatusConditionTrue(ro.Status.Conditions, v1alpha1.ConditionStalled)
}

// Line is a Rollout in one line.
func Line(ro *v1alpha1.Rollout) string {
	_, weight := Weights(ro)
	return strings.Join(strings.Fields(fmt.Sprintf("%s: %s, step %s, canary %s: %s", ro.Name, State(ro), Step(ro), weight, Sentence(ro))), " ")
}
