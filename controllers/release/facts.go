// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// facts are what a target says of what it releases, once in each look.
type facts struct {
	// revision names the version that is released. canary are its pods; nil without any.
	revision string
	canary   *canary
	// stable is the stable version where other actors decide about it; nil leaves the
	// record as it is. stableReady are its ready pods then.
	newStable   *v1alpha1.VersionStatus
	stableReady int32
	// unfit is why it can't be released as the spec wants; nil when it can.
	unfit *kit.Statement
	// gone is whether there is nothing to go back to.
	gone bool
	// noPods says that the canary has no ready pods, where Serin does not make them.
	noPods string
	// place is where a route is written to.
	place string
	// canaryEnd is the revision or the Service that the split's canary leads to, as
	// status.stable names it; "" for none.
	canaryEnd string
	// unconfirmed is whether nothing is left that could confirm a weight of 0.
	unconfirmed bool
	// ungoverned is whether weights have no effect any more.
	ungoverned bool
	// writer writes a route.
	writer writer
	// maker makes the pods and Services of the versions; nil where others make them.
	maker maker
}

// writer writes what the canary gets.
type writer interface {
	write(d *draft, r Route)
}

// maker makes the objects of the versions.
type maker interface {
	// scale sees to it that the canary has so many pods.
	scale(d *draft, want int32)
	// tidy removes what earlier releases left, which nothing waits for.
	tidy(d *draft)
	// keepBackends writes the Services of the versions where they are not what they are to
	// be, and repairBackends those that keep a router from taking traffic away.
	keepBackends(d *draft)
	repairBackends(d *draft)
	// removeBackends removes them, and reports whether they are gone.
	removeBackends(d *draft) (done bool)
}

// canary is what the pods of the version that is released are like.
type canary struct {
	// Replicas wanted, existing, and available.
	Replicas, Existing, Available int32
	// Desired is the workload's scale that they were made for.
	Desired int32
	// Failure says why they can't be created; "" when they can.
	Failure string
}

// scales reports whether Serin makes the canary's pods. It waits for all others.
func (s *snapshot) scales() bool { return s.maker != nil }

// ready reports whether the canary has as many pods as wanted.
func (s *snapshot) ready(want int32) bool {
	c := s.canary
	if c == nil || !s.scales() {
		return c != nil && c.Available > 0
	}
	return c.Available >= want && c.Replicas == want && c.Desired == s.Workload.Replicas
}

// missing says which of the pods wanted are missing.
func (s *snapshot) missing(want int32) string {
	if !s.scales() {
		return s.noPods
	}
	var now canary
	if s.canary != nil {
		now = *s.canary
	}
	text := fmt.Sprintf("%d of the canary's %d pods are available", now.Available, want)
	if now.Failure != "" {
		text += ". Its pods can't be created: " + strings.TrimSuffix(now.Failure, ".")
	}
	return text
}

// count is how many pods a version has, and how many of them are ready.
func (s *snapshot) count(v *v1alpha1.VersionStatus) (replicas, ready int32) {
	if s.scales() {
		if r := s.replicaSet(func(r *kit.ReplicaSet) bool { return r.Revision == v.Revision }); r != nil {
			return r.Replicas, r.Available
		}
		return 0, 0
	}
	if v != s.status.Canary && (v.Service == "" || v.Service != s.canaryEnd) {
		return s.stableReady, s.stableReady
	}
	if s.canary == nil {
		return 0, 0
	}
	return s.canary.Existing, s.canary.Available
}

// canaryIsStable reports whether the split's canary leads to the version that is stable by
// now, so that weight 0 would take the traffic away from the good pods.
func (s *snapshot) canaryIsStable() bool {
	v := s.status.Stable
	return v != nil && s.canaryEnd != "" && s.canaryEnd == cmp.Or(v.Service, v.Revision)
}

// canaryPods reports whether a canary other than keep has pods.
func (s *snapshot) canaryPods(keep *kit.ReplicaSet) bool {
	return s.replicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerSerin && !r.Gone() && (keep == nil || r.UID != keep.UID)
	}) != nil
}
