// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
	"github.com/serin-dev/serin/controllers/workload"
)

// complete has the API server fill the templates of a proposal in and check them, before
// anything is made of them.
func (r *Reconciler) complete(ctx context.Context, s *observation, proposal *releases.Proposal) error {
	for i := range proposal.Canaries {
		c := &proposal.Canaries[i]
		d := s.deployments[c.Name]
		if d == nil {
			continue // the planner refuses it
		}
		made := makeCanary(d, c, metav1.OwnerReference{}, "check", 0)
		made.OwnerReferences = nil
		made.Name, made.GenerateName = "", "serin-check-"
		err := r.client.Create(ctx, made, client.DryRunAll, client.DisableReadYourWritesConsistency, client.FieldOwner(v1alpha1.FieldManagerCanaryRelease))
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			proposal.Refused = append(proposal.Refused, fmt.Sprintf("the pods of Deployment %s would not be allowed: %s", c.Name, safe(err)))
			continue
		}
		if err != nil {
			return fmt.Errorf("check the pods of Deployment %q: %w", c.Name, err)
		}
		template := made.Spec.Template
		template.Labels = maps.Clone(c.Template.Labels)
		c.Template = template
	}
	return nil
}

func makeCanary(d *appsv1.Deployment, c *releases.Canary, controller metav1.OwnerReference, revision string, replicas int32) *appsv1.ReplicaSet {
	candidate := d.DeepCopy()
	candidate.Spec.Template = c.Template
	candidate.Spec.Replicas = new(ptr.Deref(d.Spec.Replicas, 1))
	return workload.MakeCanary(candidate, controller, revision, replicas)
}

// candidate is what the proposal makes of a Deployment; nil when nothing.
func (s *observation) candidate(name string) *releases.Canary {
	if s.proposal == nil {
		return nil
	}
	for i := range s.proposal.Canaries {
		if s.proposal.Canaries[i].Name == name {
			return &s.proposal.Canaries[i]
		}
	}
	return nil
}

// observeWorkloads finds the Deployments that the proposal changes, that have a canary, and
// that are on record.
func (s *observation) observeWorkloads() error {
	names := map[string]bool{}
	if s.proposal != nil {
		for _, c := range s.proposal.Canaries {
			names[c.Name] = true
		}
	}
	for _, w := range s.CanaryRelease.Status.Workloads {
		names[w.Name] = true
	}
	for name, d := range s.deployments {
		if s.holds(d) {
			names[name] = true
		}
	}
	for i := range s.replicaSets {
		if rs := &s.replicaSets[i]; isMarked(rs, s.CanaryRelease) {
			names[rs.Annotations[v1alpha1.AnnotationCanaryWorkload]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w, err := s.observeWorkload(name)
		if err != nil {
			return err
		}
		s.Workloads = append(s.Workloads, w)
	}
	return nil
}

// holds reports whether a Deployment of the release is held for an upgrade, by a CanaryRelease whose
// record was lost where that does not name it.
func (s *observation) holds(d *appsv1.Deployment) bool {
	return s.Rival == "" && s.helm.orphaned.IsZero() && d.Spec.Paused &&
		d.Annotations[annotationRelease] == s.CanaryRelease.Spec.Release && shell.HoldsPause(d, v1alpha1.FieldManagerCanaryRelease)
}

func (s *observation) observeWorkload(name string) (helmrelease.Workload, error) {
	w := helmrelease.Workload{Name: name, Presence: kit.Absent}
	d := s.deployments[name]
	if d != nil {
		replicas := ptr.Deref(d.Spec.Replicas, 1)
		w = helmrelease.Workload{
			Name: name, Presence: kit.Present, Deleting: !d.DeletionTimestamp.IsZero(), Replicas: replicas,
			Paused: d.Spec.Paused, Held: shell.HoldsPause(d, v1alpha1.FieldManagerCanaryRelease), Settled: shell.Settled(d), Rollout: d.Annotations[v1alpha1.AnnotationRollout],
		}
	}
	if c := s.candidate(name); c != nil {
		w.Candidate, w.Rolls = true, c.Rolls
		revision, err := workload.Revision(string(s.CanaryRelease.UID)+s.proposal.Digest+name, &c.Template)
		if err != nil {
			return w, err
		}
		w.Revision = revision
	}
	read := shell.ReplicaSets(d)
	for i := range s.replicaSets {
		rs := &s.replicaSets[i]
		owner, marked, known := s.ownerOf(rs, d, name)
		if !known {
			continue
		}
		observed := read(rs)
		observed.Owner, observed.Marked, observed.Rolls = owner, marked, rs.Annotations[v1alpha1.AnnotationCanaryRolls] == "true"
		observed.Unpromoted = rs.Annotations[v1alpha1.AnnotationCanaryWorkload] == name && rs.Annotations[workload.AnnotationRevision] == ""
		observed.Failure = shell.Failed(rs).Reason // its message may quote a value of the release
		w.ReplicaSets = append(w.ReplicaSets, observed)
	}
	return w, nil
}

// ownerOf says who controls a ReplicaSet, and whether it is marked, if it is a version of a
// workload or its canary.
func (s *observation) ownerOf(rs *appsv1.ReplicaSet, d *appsv1.Deployment, name string) (owner kit.Owner, marked, known bool) {
	marked = isMarked(rs, s.CanaryRelease) && rs.Annotations[v1alpha1.AnnotationCanaryWorkload] == name
	switch c := metav1.GetControllerOfNoCopy(rs); {
	case c != nil && d != nil && c.UID == d.UID:
		return kit.OwnerDeployment, marked, true
	case !marked:
		return kit.OwnerNone, false, false
	case c != nil:
		return kit.OwnerSerin, true, true
	}
	return kit.OwnerNone, true, true
}

// podsOf is the prefix of the names of a ReplicaSet's pods, which the API server cuts off
// (maxGeneratedNameLength of k8s.io/apiserver/pkg/storage/names).
func podsOf(replicaSet string) string {
	const most = 58
	prefix := replicaSet + "-"
	return prefix[:min(len(prefix), most)]
}

// belongs reports whether a pod is one of a Deployment, or of its canary, by its name.
func (s *observation) belongs(pod, deployment string) bool {
	for i := range s.replicaSets {
		rs := &s.replicaSets[i]
		if !strings.HasPrefix(pod, podsOf(rs.Name)) {
			continue
		}
		c := metav1.GetControllerOfNoCopy(rs)
		if c != nil && c.Kind == "Deployment" && c.Name == deployment || rs.Annotations[v1alpha1.AnnotationCanaryWorkload] == deployment && isMarked(rs, s.CanaryRelease) {
			return true
		}
	}
	return false
}
