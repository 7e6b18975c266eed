// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

// observation is an Observation with the objects that the actions need.
type observation struct {
	helmrelease.Observation
	helm     *knowledge
	proposal *releases.Proposal // nil when there is none
	// deployments and services of the namespace, replicaSets and slices by what they are of.
	deployments map[string]*appsv1.Deployment
	services    map[string]*corev1.Service
	replicaSets []appsv1.ReplicaSet
	slices      map[string][]*discoveryv1.EndpointSlice
	splits      map[string]*splitv1.TrafficSplit
	rollouts    []v1alpha1.Rollout
	// retry is why it has to be tried again, although a decision can be made.
	retry error
	// quiet is for how long the status need not say that the values wait to be rendered; zero
	// where they don't, or have for too long.
	quiet time.Duration
}

// observe reads everything that a decision needs. What of the cluster can't be read makes
// the whole observation unreadable: the planner then changes nothing.
func (r *Reconciler) observe(ctx context.Context, cr *v1alpha1.CanaryRelease) (observation, error) {
	s := observation{
		Observation: helmrelease.Observation{Now: r.options.Clock.Now(), CanaryRelease: cr}, helm: r.helm.of(cr),
		deployments: map[string]*appsv1.Deployment{}, services: map[string]*corev1.Service{},
		slices: map[string][]*discoveryv1.EndpointSlice{}, splits: map[string]*splitv1.TrafficSplit{},
	}
	s.ReportedAt = s.helm.reportedAt
	if cr.Status.Decision.Over() {
		r.forgetTraffic(cr.Namespace, s.helm)
		r.withdraw(client.ObjectKeyFromObject(cr))
		return s, nil // nothing matters any more
	}
	if err := r.read(ctx, &s); err != nil {
		s.Unreadable = strings.ReplaceAll(err.Error(), "\n", "; ")
		return s, err
	}
	r.observeNamespace(ctx, &s)
	r.observeRelease(ctx, &s)
	r.observeProposal(ctx, &s)
	err := s.observeWorkloads()
	if err == nil {
		s.observeServices()
		if s.helm.orphaned.IsZero() {
			r.observeTraffic(ctx, &s)
		}
		err = r.observeCopies(ctx, &s)
	}
	if err != nil {
		s.Unreadable = strings.ReplaceAll(safe(err), "\n", "; ")
		return s, withoutValues(err)
	}
	return s, s.retry
}

// observeNamespace finds out whether the namespace goes with the CanaryRelease. Where that can't be
// read, it does not: a deletion that lacks rights waits then.
func (r *Reconciler) observeNamespace(ctx context.Context, s *observation) {
	if s.CanaryRelease.DeletionTimestamp.IsZero() || r.options.NamespacedOnly {
		return
	}
	namespace := &corev1.Namespace{}
	err := r.client.Get(ctx, types.NamespacedName{Name: s.CanaryRelease.Namespace}, namespace)
	s.Doomed = err == nil && !namespace.DeletionTimestamp.IsZero()
}

// read lists what the namespace has, from the caches.
func (r *Reconciler) read(ctx context.Context, s *observation) error {
	rivals, deployments, services := &v1alpha1.CanaryReleaseList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}
	replicaSets, endpoints := &appsv1.ReplicaSetList{}, &discoveryv1.EndpointSliceList{}
	splits, rollouts := &splitv1.TrafficSplitList{}, &v1alpha1.RolloutList{}
	var err error
	for _, list := range []client.ObjectList{rivals, deployments, services, replicaSets, endpoints, splits, rollouts} {
		options := []client.ListOption{client.InNamespace(s.CanaryRelease.Namespace), client.UnsafeDisableDeepCopy}
		if list == replicaSets { // of which only a copy is one
			options = options[:1]
		}
		if e := r.client.List(ctx, list, options...); e != nil {
			err = errors.Join(err, fmt.Errorf("%s could not be listed: %w", kindOf(list), e))
		}
	}
	if err != nil {
		return err
	}
	for i := range rivals.Items {
		if c := &rivals.Items[i]; older(c, s.CanaryRelease) {
			s.Rival = c.Name
		}
	}
	for i := range deployments.Items {
		s.deployments[deployments.Items[i].Name] = &deployments.Items[i]
	}
	for i := range services.Items {
		s.services[services.Items[i].Name] = &services.Items[i]
	}
	for i := range endpoints.Items {
		name := endpoints.Items[i].Labels[discoveryv1.LabelServiceName]
		s.slices[name] = append(s.slices[name], &endpoints.Items[i])
	}
	for i := range splits.Items {
		s.splits[splits.Items[i].Name] = &splits.Items[i]
	}
	s.replicaSets, s.rollouts = replicaSets.Items, rollouts.Items
	slices.SortFunc(s.replicaSets, func(a, b appsv1.ReplicaSet) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func kindOf(list client.ObjectList) string {
	name := fmt.Sprintf("%T", list)
	return strings.TrimSuffix(name[strings.LastIndex(name, ".")+1:], "List") + "s"
}

// older reports whether another CanaryRelease tries the same release, has not ended, and
// was there first.
func older(other, cr *v1alpha1.CanaryRelease) bool {
	if other.UID == cr.UID || other.Spec.Release != cr.Spec.Release || other.Status.Decision.Over() {
		return false
	}
	if !other.CreationTimestamp.Equal(&cr.CreationTimestamp) {
		return other.CreationTimestamp.Before(&cr.CreationTimestamp)
	}
	return other.Name < cr.Name
}

// isMarked reports whether an object was made for the CanaryRelease.
func isMarked(o client.Object, cr *v1alpha1.CanaryRelease) bool {
	return o.GetLabels()[v1alpha1.LabelCanaryRelease] == cr.Name && o.GetAnnotations()[v1alpha1.AnnotationCanaryReleaseUID] == string(cr.UID)
}

// mark puts the name and the UID of a CanaryRelease on an object that is made for it.
func mark(o client.Object, cr *v1alpha1.CanaryRelease, workload string) {
	labels := shell.With(o.GetLabels(), map[string]string{v1alpha1.LabelCanaryRelease: cr.Name})
	annotations := shell.With(o.GetAnnotations(), map[string]string{v1alpha1.AnnotationCanaryReleaseUID: string(cr.UID)})
	if workload != "" {
		annotations[v1alpha1.AnnotationCanaryWorkload] = workload
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}
