// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/workload"
	"github.com/serin-dev/serin/traffic"
)

// ObjectOf is the exact object.
func ObjectOf(o client.Object) kit.Object {
	return kit.Object{Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

// MayBeThere asks past the cache whether an object that seems to be gone is there, or another one of
// its name that the cache does not show yet: known tells that it shows another one. What could not be
// asked may be there. Into takes what is read.
func MayBeThere(ctx context.Context, live client.Reader, gone, into client.Object, known bool) (bool, error) {
	err := live.Get(ctx, client.ObjectKeyFromObject(gone), into)
	if err == nil {
		return into.GetUID() == gone.GetUID() || !known, nil
	}
	err = client.IgnoreNotFound(err)
	return err != nil, err
}

// ReplicaSets reads versions of a Deployment, which is nil when there is none. Who owns
// one, and why its pods can't be created, is the caller's to say.
func ReplicaSets(d *appsv1.Deployment) func(*appsv1.ReplicaSet) kit.ReplicaSet {
	current := func(*appsv1.ReplicaSet) bool { return false }
	if d != nil {
		current = workload.HasTemplate(&d.Spec.Template)
	}
	return func(rs *appsv1.ReplicaSet) kit.ReplicaSet {
		return kit.ReplicaSet{
			Object:   ObjectOf(rs),
			Revision: rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
			Current:  current(rs),
			Replicas: ptr.Deref(rs.Spec.Replicas, 1), Existing: rs.Status.Replicas, Available: rs.Status.AvailableReplicas,
			Uncounted: rs.Status.ObservedGeneration < rs.Generation,
			Desired:   workload.DesiredReplicas(rs), Deleting: !rs.DeletionTimestamp.IsZero(),
			Promotion: rs.Labels[v1alpha1.LabelPromotion], Rejected: rs.Annotations[v1alpha1.AnnotationRejected],
		}
	}
}

// ReadyEndpoints are the ready endpoints of a Service, each once, by the name of its pod or
// by its address when it is no pod. The cache needs the index traffic.IndexEndpoints.
func ReadyEndpoints(ctx context.Context, c client.Reader, namespace, service string) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	err := c.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingFields{traffic.IndexEndpoints: service}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %q: %w", service, err)
	}
	var ready []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			// The API says that an endpoint whose readiness is unknown counts as ready.
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, EndpointName(e))
			}
		}
	}
	slices.Sort(ready)
	return slices.Compact(ready), nil
}

// EndpointName is the name of an endpoint's pod, or its address when it is no pod.
func EndpointName(e discoveryv1.Endpoint) string {
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		return e.TargetRef.Name
	}
	if len(e.Addresses) > 0 {
		return e.Addresses[0]
	}
	return ""
}

// Failed is the condition of a ReplicaSet whose pods can't be created, because of a quota
// for instance; an empty one when they can.
func Failed(rs *appsv1.ReplicaSet) appsv1.ReplicaSetCondition {
	for _, c := range rs.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return appsv1.ReplicaSetCondition{}
}

// Seen reports whether the Deployment controller has seen the newest generation, and so controls
// all ReplicaSets that were there.
func Seen(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration >= d.Generation }

// Settled reports whether the Deployment controller has nothing left to do.
func Settled(d *appsv1.Deployment) bool {
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	return Seen(d) && d.Status.Replicas == replicas &&
		d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == replicas
}

// HoldsPause reports whether a field manager applied spec.paused.
func HoldsPause(d *appsv1.Deployment, manager string) bool {
	for _, m := range d.ManagedFields {
		if m.Manager == manager && m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:paused"`)) {
			return true
		}
	}
	return false
}

// ObserveSplit reads a TrafficSplit, and what its router reports of the present spec.
func ObserveSplit(split *splitv1.TrafficSplit, ours bool) kit.Split {
	out := kit.Split{Object: ObjectOf(split), Presence: kit.Present, Ours: ours, Deleting: !split.DeletionTimestamp.IsZero()}
	if c := splitv1.CurrentCondition(split, splitv1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		out.Refused, out.Unserved = c.Message, len(split.Status.Backends) == 0
		return out
	}
	out.Waiting = "the router has not seen the TrafficSplit yet"
	if c := splitv1.CurrentCondition(split, splitv1.ConditionProgrammed); c != nil {
		out.Programmed, out.Waiting = c.Status == metav1.ConditionTrue, c.Message
	}
	return out
}
