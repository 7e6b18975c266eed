// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// Facts are what a target says of what it releases, once in each look.
type Facts struct {
	// Revision names the version that is released. canary are its pods; nil without any.
	Revision string
	Canary   *Canary
	// stable is the stable version where other actors decide about it; nil leaves the
	// record as it is. stableReady are its ready pods then.
	NewStable   *v1alpha1.VersionStatus
	StableReady int32
	// StableDown is whether none of the pods that the stable version is to have is available.
	StableDown bool
	// Unfit is why it can't be released as the spec wants; nil when it can.
	Unfit *kit.Statement
	// Gone is whether no stable version is left.
	Gone bool
	// NoPods says that the canary has no ready pods, where Serin does not make them.
	NoPods string
	// Unseen says why the preview Service does not lead testers to the canary yet; "" when
	// it does, or when there is none.
	Unseen string
	// Place is where a route is written to.
	Place string
	// CanaryEnd is the revision or the Service that the split's canary leads to, as
	// status.stable names it; "" for none.
	CanaryEnd string
	// Unconfirmed is whether nothing is left that could confirm a weight of 0.
	Unconfirmed bool
	// Ungoverned is whether weights have no effect any more.
	Ungoverned bool
	// Writer writes a route.
	Writer Writer
	// Maker makes the pods and Services of the versions; nil where others make them.
	Maker Maker
}

// Writer writes what the canary gets.
type Writer interface {
	Write(d *Draft, r strategy.Route)
}

// Maker makes the objects of the versions.
type Maker interface {
	// Scale sees to it that the canary has so many pods.
	Scale(d *Draft, want int32)
	// Tidy removes what earlier releases left, which nothing waits for.
	Tidy(d *Draft)
	// KeepBackends writes the Services of the versions where they are not what they are to
	// be, and repairBackends those that keep a router from removing traffic.
	KeepBackends(d *Draft)
	RepairBackends(d *Draft)
	// RemoveBackends removes them, and reports whether they are gone.
	RemoveBackends(d *Draft) (done bool)
}

// Canary is what the pods of the version that is released are like.
type Canary struct {
	// Replicas wanted, existing, and available.
	Replicas, Existing, Available int32
	// Desired is the workload's scale that they were made for.
	Desired int32
	// Failure says why they can't be created; "" when they can.
	Failure string
}

// Scales reports whether Serin makes the canary's pods. It waits for all others.
func (s *Snapshot) Scales() bool { return s.Maker != nil }

// Ready reports whether the canary has as many pods as wanted.
func (s *Snapshot) Ready(want int32) bool {
	c := s.Canary
	if c == nil || !s.Scales() {
		return c != nil && c.Available > 0
	}
	return c.Available >= want && c.Replicas == want && c.Desired == s.Workload.Replicas
}

// Missing says which of the pods wanted are missing.
func (s *Snapshot) Missing(want int32) string {
	var neither string
	if s.Outage() {
		neither = ", and none of stable's is available either, which is no evidence against the canary"
	}
	if !s.Scales() {
		return s.NoPods + neither
	}
	var now Canary
	if s.Canary != nil {
		now = *s.Canary
	}
	text := fmt.Sprintf("%d of the canary's %d pods are available", now.Available, want) + neither
	if now.Failure != "" {
		text += ". Its pods can't be created: " + strings.TrimSuffix(now.Failure, ".")
	}
	return text
}

// Count is how many pods a version has, and how many of them are ready.
func (s *Snapshot) Count(v *v1alpha1.VersionStatus) (replicas, ready int32) {
	if s.Scales() {
		if r := s.ReplicaSet(func(r *kit.ReplicaSet) bool { return r.Revision == v.Revision }); r != nil {
			return r.Replicas, r.Available
		}
		return 0, 0
	}
	if v != s.Status.Canary && (v.Service == "" || v.Service != s.CanaryEnd) {
		return s.StableReady, s.StableReady
	}
	if s.Canary == nil {
		return 0, 0
	}
	return s.Canary.Existing, s.Canary.Available
}

// CanaryIsStable reports whether the split's canary leads to the version that is stable by
// now, so that weight 0 would remove the traffic of the good pods.
func (s *Snapshot) CanaryIsStable() bool {
	v := s.Status.Stable
	return v != nil && s.CanaryEnd != "" && s.CanaryEnd == cmp.Or(v.Service, v.Revision)
}

// CanaryPods reports whether a canary other than keep has pods.
func (s *Snapshot) CanaryPods(keep *kit.ReplicaSet) bool {
	return s.ReplicaSet(func(r *kit.ReplicaSet) bool {
		return r.Owner == kit.OwnerSerin && !r.Gone() && (keep == nil || r.UID != keep.UID)
	}) != nil
}
