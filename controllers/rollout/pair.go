// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/controllers/kit"
)

// observePair looks behind two Services that users keep.
func (r *Reconciler) observePair(ctx context.Context, s *snapshot) error {
	if s.Service.Presence == kit.Present {
		s.Service.Problem = s.rootProblem()
	}
	// Routers report the pods that can answer in the status of the split.
	if s.split != nil {
		for _, b := range s.split.Status.Backends {
			switch b.Service {
			case s.Rollout.Spec.Services.Stable:
				s.Pair.StableReady = b.ReadyEndpoints
			case s.Rollout.Spec.Services.Canary:
				s.Pair.CanaryReady = b.ReadyEndpoints
			}
		}
	}
	var err error
	if s.Pair.CanaryRevision, err = r.behind(ctx, s, s.Rollout.Spec.Services.Canary); err != nil {
		return err
	}
	s.Pair.StableRevision, err = r.behind(ctx, s, s.Rollout.Spec.Services.Stable)
	return err
}

// behind identifies what a Service selects: its newest ReplicaSet that has pods; ""
// when all are scaled to zero, which is no other version. Pods without one, of a
// StatefulSet for instance, are known by the Service's name only.
func (r *Reconciler) behind(ctx context.Context, s *snapshot, name string) (string, error) {
	svc := &corev1.Service{}
	presence, err := r.get(ctx, s.Rollout, name, svc)
	if err != nil {
		return "", err
	}
	if presence == kit.Absent {
		s.Pair.Missing = name
		return revisionOf(name, ""), nil
	}
	list := &appsv1.ReplicaSetList{}
	if err := r.client.List(ctx, list, client.InNamespace(s.Rollout.Namespace)); err != nil {
		return "", fmt.Errorf("ReplicaSets could not be listed: %w", err)
	}
	newest, idle := newestOf(list.Items, labels.SelectorFromSet(svc.Spec.Selector))
	switch {
	case newest == nil && idle:
		return "", nil
	case newest == nil:
		return revisionOf(name, ""), nil
	}
	return revisionOf(name, string(newest.UID)), nil
}

// newestOf is the newest ReplicaSet with pods whose pods are selected, and whether
// there is one without.
func newestOf(list []appsv1.ReplicaSet, selector labels.Selector) (newest *appsv1.ReplicaSet, idle bool) {
	for i := range list {
		rs := &list[i]
		switch {
		case selector.Empty() || !selector.Matches(labels.Set(rs.Spec.Template.Labels)):
		case ptr.Deref(rs.Spec.Replicas, 1) == 0:
			idle = true
		case newest == nil || newest.CreationTimestamp.Before(&rs.CreationTimestamp):
			newest = rs
		}
	}
	return newest, idle
}

// revisionOf is a short name for what is behind a Service.
func revisionOf(service, content string) string {
	sum := sha256.Sum256([]byte(service + "/" + content))
	return hex.EncodeToString(sum[:5])
}
