// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/sampling/evidence"
)

// isDelegated reports whether a Rollout releases a CanaryRelease.
func isDelegated(ro *v1alpha1.Rollout) bool {
	return ro.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease
}

// subject is what a release is measured by, if its requests are counted at all beside the
// user's metrics. The split of a CanaryRelease has the name of its Service.
func (s *snapshot) subject(status *v1alpha1.RolloutStatus) (of analysis.Subject, measured bool) {
	ro := s.Rollout
	if s.routerless() {
		of.Stable, of.Canary = s.replicaSetOf(status.Stable), s.replicaSetOf(status.Canary)
		return of, s.counting == evidence.CountingReplicaSets && of.Stable != "" && of.Canary != ""
	}
	stable, canary := backendNames(ro)
	of = analysis.Subject{Split: ro.Name, Stable: stable, Canary: canary}
	if isDelegated(ro) {
		of.Split = ro.Spec.Service
	}
	return of, true
}

// replicaSetOf is the name of a version's ReplicaSet; "" when there is none.
func (s *snapshot) replicaSetOf(v *v1alpha1.VersionStatus) string {
	i := slices.IndexFunc(s.ReplicaSets, func(r kit.ReplicaSet) bool { return v != nil && r.Revision == v.Revision })
	if i < 0 {
		return ""
	}
	return s.ReplicaSets[i].Name
}

// observeDelegated reads the CanaryRelease, and takes what it says of its traffic for what a
// router says of a split.
func (r *Reconciler) observeDelegated(ctx context.Context, s *snapshot) error {
	if s.Split.Presence = kit.Absent; !r.options.CanaryReleases {
		s.Delegated = state.Delegated{Presence: kit.Absent, Unserved: true}
		return nil
	}
	cr := &v1alpha1.CanaryRelease{}
	presence, err := r.get(ctx, s.Rollout, s.Rollout.Spec.WorkloadRef.Name, cr)
	if s.Delegated.Presence = presence; presence != kit.Present {
		return err
	}
	s.canaryRelease = cr
	s.Delegated = delegatedOf(cr)
	s.Delegated.Problem, s.Delegated.Uneven = unshared(cr, s.Rollout.Spec.Service), uneven(cr, s.Rollout.Spec.Service)
	s.Split = splitOf(cr, s.Rollout)
	if s.Service.Presence == kit.Present && s.Delegated.Problem == "" {
		s.Service.Problem = s.rootProblem()
	}
	return nil
}

func delegatedOf(cr *v1alpha1.CanaryRelease) state.Delegated {
	d := state.Delegated{
		Presence: kit.Present, Deleting: !cr.DeletionTimestamp.IsZero(), Decision: cr.Status.Decision,
		Revision: revisionOf(string(cr.UID), cr.Status.ManifestDigest), Unshared: len(cr.Status.Services) == 0 && observed(cr),
		Message: messageOf(cr),
	}
	d.Replicas, d.Ready = podsOf(cr)
	if release := cr.Status.Release; release != nil {
		d.Stable = fmt.Sprintf("helm-%d", max(release.Revision, release.AdoptedRevision))
	}
	if delegation := cr.Spec.Delegation; delegation != nil {
		d.Rollout = delegation.Rollout
		d.Held = delegation.Weight != nil || delegation.Transition != v1alpha1.CanaryTransitionNone || delegation.ManifestDigest+delegation.By != ""
		if meant(cr) {
			d.Transition = delegation.Transition
		}
	}
	return d
}

// meant reports whether what a Rollout wrote is about the present content.
func meant(cr *v1alpha1.CanaryRelease) bool {
	d := cr.Spec.Delegation
	return d != nil && d.By == d.Rollout && d.ManifestDigest != "" && d.ManifestDigest == cr.Status.ManifestDigest
}

// observed reports whether the status is about the present spec.
func observed(cr *v1alpha1.CanaryRelease) bool { return cr.Status.ObservedGeneration == cr.Generation }

// podsOf are the pods of all of the canary's workloads. None is ready while one of the
// workloads has no ready pod: its requests would meet no pod. A workload that is to have
// none is of earlier content.
func podsOf(cr *v1alpha1.CanaryRelease) (replicas, ready int32) {
	missing := false
	for _, w := range cr.Status.Workloads {
		replicas, ready = replicas+w.Replicas, ready+w.ReadyReplicas
		missing = missing || w.Replicas > 0 && w.ReadyReplicas == 0
	}
	if missing {
		return replicas, 0
	}
	return replicas, ready
}

// messageOf is what the CanaryRelease says of its state.
func messageOf(cr *v1alpha1.CanaryRelease) string {
	c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || !observed(cr) {
		return "Serin has not looked at it yet."
	}
	return c.Message
}

// unshared says why the traffic of a Service says nothing of the canary; "" when it does,
// or when that is not known yet.
func unshared(cr *v1alpha1.CanaryRelease, service string) string {
	shared := cr.Status.Services
	if cr.Status.Delegation == nil || !cr.Status.Delegation.Programmed ||
		slices.ContainsFunc(shared, func(s v1alpha1.CanaryServiceStatus) bool { return s.Service == service }) {
		return ""
	}
	names := make([]string, 0, len(shared))
	for _, s := range shared {
		names = append(names, s.Service)
	}
	return fmt.Sprintf("the CanaryRelease %q does not share the traffic of the Service %q; make a Rollout for one of %s", cr.Name, service, strings.Join(names, ", "))
}

// uneven reports whether the ports of a Service have different weights: one with the weight
// 0 in spec.services keeps it.
func uneven(cr *v1alpha1.CanaryRelease, service string) bool {
	return slices.ContainsFunc(cr.Status.Services, func(s v1alpha1.CanaryServiceStatus) bool {
		return s.Service == service && slices.ContainsFunc(s.Ports, func(p v1alpha1.CanaryPortStatus) bool { return p.Weight != s.Ports[0].Weight })
	})
}

// splitOf is what was requested of a CanaryRelease and what is live. What was written for
// other content requests nothing.
func splitOf(cr *v1alpha1.CanaryRelease, ro *v1alpha1.Rollout) state.Split {
	out := state.Split{Observed: -1, Split: kit.Split{
		Object: shell.ObjectOf(cr), Presence: kit.Present, Deleting: !cr.DeletionTimestamp.IsZero(),
		Ours:    cr.Spec.Delegation != nil && cr.Spec.Delegation.Rollout == ro.Name,
		Waiting: strings.TrimSuffix(messageOf(cr), "."),
	}}
	if meant(cr) {
		out.Requested.Weight = ptr.Deref(cr.Spec.Delegation.Weight, 0)
	}
	if d := cr.Status.Delegation; d != nil {
		out.Observed, out.Programmed = d.Weight, d.Programmed && observed(cr) && d.Weight == out.Requested.Weight
	}
	return out
}

var errNoCanaryRelease = errors.New("there is no CanaryRelease")

// applyDelegation owns what a Rollout decides of a CanaryRelease, and nothing else of it. It is
// forced: another actor that wrote a weight must not keep a bad canary in its traffic. It names
// the version that was seen, so that an earlier leader, or a decision about an earlier
// state, moves nothing. Its rollout is not written, since that is the owner's consent:
// without it, the API server refuses the rest.
func (r *Reconciler) applyDelegation(ctx context.Context, s snapshot, action kit.Action) error {
	cr := s.canaryRelease
	if cr == nil {
		return errNoCanaryRelease
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindCanaryRelease))
	u.SetNamespace(cr.Namespace)
	u.SetName(cr.Name)
	u.SetUID(cr.UID)
	u.SetResourceVersion(cr.ResourceVersion)
	if a, ok := action.(state.SetDelegation); ok { // else nothing is owned any more
		u.Object["spec"] = map[string]any{"delegation": delegationOf(a, s.Rollout.Name, cr.Status.ManifestDigest)}
	}
	// To wait for a write without a type, the cache would have to watch CanaryReleases a second time.
	return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership,
		client.DisableReadYourWritesConsistency)
}

// delegationOf is what an action of a Rollout requests of a content.
func delegationOf(a state.SetDelegation, by, digest string) map[string]any {
	delegation := map[string]any{"weight": int64(a.Weight), "manifestDigest": digest, "by": by}
	if a.Transition != v1alpha1.CanaryTransitionNone {
		delegation["transition"] = string(a.Transition)
	}
	return delegation
}
