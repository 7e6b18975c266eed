// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/controllers/kit"
)

// observeRunning asks the API server for the pods of a canary that gets traffic and has no
// available pod: pods whose containers were ready when their node reported last are not the
// canary's fault. It is read only then, since the caches hold no pods of users.
func (r *Reconciler) observeRunning(ctx context.Context, s *snapshot) error {
	step := s.Rollout.Status.Step
	if s.Split.Observed <= 0 && (step == nil || step.ProgrammedAt == nil) {
		return nil
	}
	i := slices.IndexFunc(s.ReplicaSets, func(rs kit.ReplicaSet) bool {
		return rs.Owner == kit.OwnerSerin && rs.Current && rs.Existing > 0 && rs.Available == 0
	})
	if i < 0 {
		return nil
	}
	var list corev1.PodList
	err := r.options.Configuration.Reader.List(ctx, &list, client.InNamespace(s.Rollout.Namespace),
		client.MatchingLabels{appsv1.DefaultDeploymentUniqueLabelKey: s.ReplicaSets[i].Revision})
	if err != nil {
		return fmt.Errorf("the pods of the canary could not be listed: %w", err)
	}
	s.CanaryRunning = slices.ContainsFunc(list.Items, containersReady)
	return nil
}

// containersReady reports whether all containers of a pod that is to stay were ready when
// its node reported last. The control plane sets the condition Ready of pods whose node does
// not report, and leaves this one.
func containersReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue
	})
}
