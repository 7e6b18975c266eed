// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
)

// latest is the newest backend of the split that is ready, or "".
func (l *loaded) latest(ctx context.Context) (string, error) {
	var candidates []trafficblock.Candidate
	for _, b := range l.block.Backends() {
		c, err := l.candidate(ctx, b.Service)
		if err != nil {
			return "", fmt.Errorf("find out what %s stands for: %w", trafficblock.Latest, err)
		}
		candidates = append(candidates, c)
	}
	return trafficblock.Newest(candidates)
}

// candidate tells how many endpoints of a Service are ready, and how old they are.
func (l *loaded) candidate(ctx context.Context, name string) (trafficblock.Candidate, error) {
	c := trafficblock.Candidate{Service: name}
	service, err := l.service(ctx, name)
	if err != nil || service == nil {
		return c, err
	}
	var slices discoveryv1.EndpointSliceList
	err = l.api.List(ctx, &slices, client.InNamespace(l.split.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
	if err != nil {
		return c, err
	}
	sets := map[string]bool{}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if ready := e.Conditions.Ready; ready != nil && !*ready {
				continue
			}
			c.Ready++
			born, err := l.born(ctx, e.TargetRef, sets)
			if err != nil {
				return c, err
			}
			if born.After(c.Born) {
				c.Born = born
			}
		}
	}
	if c.Born.IsZero() {
		c.Born = service.CreationTimestamp.Time
	}
	return c, nil
}

// born is when the ReplicaSet of a pod was created. It is zero where there is none, or
// it was asked for before.
func (l *loaded) born(ctx context.Context, pod *corev1.ObjectReference, asked map[string]bool) (time.Time, error) {
	if pod == nil || pod.Kind != "Pod" {
		return time.Time{}, nil
	}
	var p corev1.Pod
	err := l.api.Get(ctx, client.ObjectKey{Namespace: l.split.Namespace, Name: pod.Name}, &p)
	if err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(&p)
	if owner == nil || owner.Kind != "ReplicaSet" || asked[owner.Name] {
		return time.Time{}, nil
	}
	asked[owner.Name] = true
	var set appsv1.ReplicaSet
	err = l.api.Get(ctx, client.ObjectKey{Namespace: l.split.Namespace, Name: owner.Name}, &set)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	return set.CreationTimestamp.Time, err
}
