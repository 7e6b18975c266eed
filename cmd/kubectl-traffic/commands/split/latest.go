// SPDX-License-Identifier: Apache-2.0

package split

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/tags"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
	"github.com/serin-dev/serin/traffic"
)

// latest is the newest version that is ready, or "". It may be one that an earlier command
// dropped from the split, or that never was a backend of it.
func (l *loaded) latest(ctx context.Context) (string, error) {
	services, err := l.versions(ctx)
	if err != nil {
		return "", fmt.Errorf("find out what %s stands for: %w", trafficblock.Latest, err)
	}
	var candidates []trafficblock.Candidate
	for _, service := range services {
		c, err := l.candidate(ctx, service)
		if err != nil {
			return "", fmt.Errorf("find out what %s stands for: %w", trafficblock.Latest, err)
		}
		candidates = append(candidates, c)
	}
	return trafficblock.Newest(candidates)
}

// versions are the Services of the split's backends, and those of the namespace that select some
// of the root Service's pods, as the Service of a version does. A Service with the selector of
// another one of them is the same version, and left out; so is one that a tag has made.
func (l *loaded) versions(ctx context.Context) ([]*corev1.Service, error) {
	var services corev1.ServiceList
	if err := l.api.List(ctx, &services, client.InNamespace(l.split.Namespace)); err != nil {
		return nil, err
	}
	byName := map[string]*corev1.Service{}
	for i := range services.Items {
		byName[services.Items[i].Name] = &services.Items[i]
	}
	var found []*corev1.Service
	for _, b := range l.block.Backends() {
		if service := byName[b.Service]; service != nil {
			found = append(found, service)
		}
	}
	root := byName[tags.Root(l.split)]
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		service := byName[name]
		known := slices.ContainsFunc(found, func(s *corev1.Service) bool { return maps.Equal(s.Spec.Selector, service.Spec.Selector) })
		if !known && root != nil && !tags.Made(service, l.split) && selectsSomeOf(root, service) {
			found = append(found, service)
		}
	}
	return found, nil
}

// selectsSomeOf is whether a Service selects pods of the root Service, and by more labels than
// its owner gave that.
func selectsSomeOf(root, service *corev1.Service) bool {
	_, err := traffic.PinKeys(root, service)
	return err == nil && len(traffic.DeclaredSelector(root)) > 0
}

// candidate says how many endpoints of a Service are ready, and how old they are.
func (l *loaded) candidate(ctx context.Context, service *corev1.Service) (trafficblock.Candidate, error) {
	c := trafficblock.Candidate{Service: service.Name}
	var slices discoveryv1.EndpointSliceList
	err := l.api.List(ctx, &slices, client.InNamespace(l.split.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
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
