// SPDX-License-Identifier: Apache-2.0

package rolloutapi

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
	"github.com/serin-dev/serin/schedule"
)

// Snapshot reads a Rollout with what runs its versions.
func Snapshot(ctx context.Context, api client.Reader, key client.ObjectKey) (rolloutview.Snapshot, error) {
	ro := &v1alpha1.Rollout{}
	if err := api.Get(ctx, key, ro); err != nil {
		return rolloutview.Snapshot{Rollout: ro}, err
	}
	return Versions(ctx, api, ro)
}

// Versions reads what runs the versions of a Rollout.
func Versions(ctx context.Context, api client.Reader, ro *v1alpha1.Rollout) (rolloutview.Snapshot, error) {
	s := rolloutview.Snapshot{Rollout: ro}
	for _, v := range []*v1alpha1.VersionStatus{ro.Status.Stable, ro.Status.Canary} {
		if v == nil {
			continue
		}
		version := client.MatchingLabels{appsv1.DefaultDeploymentUniqueLabelKey: v.Revision}
		var sets appsv1.ReplicaSetList
		if err := api.List(ctx, &sets, client.InNamespace(ro.Namespace), version); err != nil {
			return s, err
		}
		for _, set := range sets.Items {
			if name := ro.Spec.WorkloadRef.Name; name == "" || strings.HasPrefix(set.Name, name+"-") {
				s.ReplicaSets = append(s.ReplicaSets, set)
			}
		}
		var pods corev1.PodList
		if err := api.List(ctx, &pods, client.InNamespace(ro.Namespace), version); err != nil {
			return s, err
		}
		s.Pods = append(s.Pods, pods.Items...)
	}
	return s, nil
}

// Events reads the events of a Rollout, oldest first.
func Events(ctx context.Context, api client.Reader, ro *v1alpha1.Rollout) ([]corev1.Event, error) {
	return EventsOf(ctx, api, "Rollout", ro)
}

// EventsOf reads the events of an object of a kind, oldest first.
func EventsOf(ctx context.Context, api client.Reader, kind string, o client.Object) ([]corev1.Event, error) {
	var events corev1.EventList
	mine := client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": o.GetName(), "involvedObject.uid": string(o.GetUID())}
	if err := api.List(ctx, &events, client.InNamespace(o.GetNamespace()), mine); err != nil {
		return nil, err
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return events.Items, nil
}

// Freezes reads the Freezes that concern a namespace.
func Freezes(ctx context.Context, api client.Reader, namespace string) ([]v1alpha1.Freeze, error) {
	var list v1alpha1.FreezeList
	var n corev1.Namespace
	err := api.List(ctx, &list)
	if err == nil && len(list.Items) > 0 {
		err = api.Get(ctx, client.ObjectKey{Name: namespace}, &n)
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(f v1alpha1.Freeze) bool { return !schedule.Applies(&f, n.Labels) }), nil
}
