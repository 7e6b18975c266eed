// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/workload"
)

// totalWeight is the sum of the weights that Serin writes: they are percentages.
const totalWeight = 100

// backendNames are the Services of stable and canary.
func backendNames(ro *v1alpha1.Rollout) (stable, canary string) {
	return workload.BackendName(ro.Spec.Service, v1alpha1.RoleStable), workload.BackendName(ro.Spec.Service, v1alpha1.RoleCanary)
}

// requestedWeight is the canary's weight in the spec of the split, or -1 when the
// spec is not what Serin writes: somebody else's edit is drift, whatever it says.
func requestedWeight(ts *splitv1.TrafficSplit, s *scene, stable, canary string) int32 {
	if ts.Spec.Service != s.Rollout.Spec.Service || len(ts.Spec.Matches) > 0 ||
		ts.Annotations[splitv1.AnnotationRouter] != string(s.RouterName) {
		return -1
	}
	weights := map[string]int32{}
	for _, b := range ts.Spec.Backends {
		weights[b.Service] = b.Weight
	}
	return canaryWeight(weights, stable, canary)
}

// observedWeight is the canary's weight in effect, or -1 when it is unknown.
func observedWeight(backends []splitv1.BackendStatus, stable, canary string) int32 {
	weights := map[string]int32{}
	for _, b := range backends {
		weights[b.Service] = b.Weight
	}
	return canaryWeight(weights, stable, canary)
}

func canaryWeight(weights map[string]int32, stable, canary string) int32 {
	w, found := weights[canary]
	if !found || len(weights) != 2 || w < 0 || w > totalWeight || weights[stable] != totalWeight-w {
		return -1
	}
	return w
}

// splitConditions says whether the router has put the present spec in effect, why
// it refuses it, and what it waits for.
func splitConditions(ts *splitv1.TrafficSplit) (inEffect bool, refused, waiting string) {
	if c := current(ts, splitv1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return false, c.Message, ""
	}
	c := current(ts, splitv1.ConditionProgrammed)
	if c == nil {
		return false, "", "the router has not seen the TrafficSplit yet"
	}
	return c.Status == metav1.ConditionTrue, "", c.Message
}

// current is a condition of the present generation.
func current(ts *splitv1.TrafficSplit, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(ts.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != ts.Generation {
		return nil
	}
	return c
}
