// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// CanaryPods is how many pods a step needs out of all replicas.
func (s Step) CanaryPods(replicas int32) int32 {
	if s.Pods == nil {
		return CanaryReplicas(s.Weight, replicas)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.Pods, int(replicas), true)
	if err != nil || replicas <= 0 {
		return CanaryReplicas(s.Weight, replicas)
	}
	return int32(min(max(n, 1), int(replicas))) //nolint:gosec // at most replicas
}

// CanaryReplicas is how many pods a weight needs out of all replicas: its share,
// rounded up, so that the canary's pods are never busier than stable's.
func CanaryReplicas(weight, replicas int32) int32 {
	if replicas <= 0 {
		return 0
	}
	n := (int64(replicas)*int64(weight) + 99) / 100
	return int32(min(max(n, 1), int64(replicas))) //nolint:gosec // at most replicas
}

// SharedReplicas is how many pods of the canary, with all of stable's, give it a
// share of the requests that is nearest to the weight. It can't have more pods
// than the workload, and so never more than half of the traffic.
//
// From c/(c+n) = w/100: c = n·w/(100−w).
func SharedReplicas(weight, replicas int32) int32 {
	if weight <= 0 || replicas <= 0 {
		return 0
	}
	if weight >= 50 {
		return replicas
	}
	n := math.Round(float64(replicas) * float64(weight) / float64(100-weight))
	return min(max(int32(n), 1), replicas)
}

// Share is the percentage of requests that reach the canary's pods behind a
// Service that selects both versions.
func Share(canary, stable int32) int32 {
	if canary <= 0 {
		return 0
	}
	return int32(math.Round(100 * float64(canary) / float64(canary+max(stable, 0))))
}
