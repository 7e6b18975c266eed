// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// The preview Service is the user's, and selects the pods of every version. One key narrows
// it while there may be pods of two:
//
//	when                                       | it selects
//	-------------------------------------------+----------------------------------
//	no release has begun, no canary has pods   | what its owner declares
//	before the first pod of the canary         | stable
//	a pod of the canary is available           | the canary, also after the switch
//	all pods of the canary are gone, no end yet| stable
//	it is rolled back, superseded or deleted   | stable, until the canary's pods are gone
//	it was handed over to the Deployment       | that version, until the old pods are gone
//
// So testers never meet two versions, and never none because of Serin. Production does not
// wait for it: the key is written after everything else of a look. Only the first pod of a
// canary waits until the Service is narrowed, and the test of the new version until it leads
// there.

// PreviewSettle is how long kube-proxies are given to follow a preview Service.
const PreviewSettle = 5 * time.Second

// KeepPreviews ends a look: it writes the key of the preview Service, and restores those
// that the spec does not name any more.
func KeepPreviews(d *state.Draft) {
	var actions []kit.Action
	for _, o := range d.StalePreviews {
		actions = append(actions, state.PointPreview{Object: o})
	}
	if p, want := &d.Preview, previewed(&d.Snapshot); p.Presence == kit.Present && p.Revision != want && (want == "" || !forbidden(&d.Snapshot)) {
		actions = append(actions, state.PointPreview{Object: p.Object, Revision: want})
	}
	// Nothing is left of a Rollout that was let go.
	last := slices.IndexFunc(d.Actions, func(a kit.Action) bool { _, is := a.(kit.RemoveFinalizer); return is })
	if last < 0 {
		last = len(d.Actions)
	}
	d.Actions = slices.Insert(d.Actions, last, actions...)
}

// forbidden reports whether the key must not be added to the preview Service.
func forbidden(s *state.Snapshot) bool {
	return s.Preview.Problem != "" || s.Rival != "" && s.Preview.Revision == ""
}

// previewed is the revision that the preview Service has to select; "" for what its owner
// declares.
func previewed(s *state.Snapshot) string {
	if promoted := handedOver(s); promoted != nil {
		return promoted.Revision
	}
	tried := isTried(s)
	if canary := canaryOf(s); tried && canary != nil && !canary.Gone() && (canary.Available > 0 || s.Preview.Revision == canary.Revision) {
		return canary.Revision
	}
	if stable := s.Stable(); (tried || s.CanaryPods(nil)) && stable != nil && !stable.Gone() {
		return stable.Revision
	}
	return ""
}

// isTried reports whether a release is under way to the revision that its owner wants.
func isTried(s *state.Snapshot) bool {
	return s.Begun() && s.Status.Canary.Revision == s.Revision && !s.RolledBack() && !s.Deleting()
}

// mixed reports whether the preview Service would lead to both versions as soon as the canary
// has a pod.
func mixed(s *state.Snapshot) bool {
	return s.Preview.Presence == kit.Present && s.Preview.Revision == "" && previewed(s) != ""
}

// unseen says why the preview Service does not lead testers to the canary yet.
func unseen(s *state.Snapshot, canary *kit.ReplicaSet) string {
	p := &s.Preview
	switch {
	case state.PreviewService(&s.Rollout.Spec) == "" || canary == nil:
		return ""
	case p.Presence != kit.Present || p.Revision != canary.Revision:
		return "its selector has not been changed yet"
	case !p.Confirmed:
		return "its endpoints are not those of the canary yet"
	case s.Now.Before(p.Since.Add(PreviewSettle)):
		return fmt.Sprintf("waiting %s until every kube-proxy follows", state.Brief(PreviewSettle))
	}
	return ""
}

// refusePreview says why the preview Service can't be one.
func refusePreview(s *state.Snapshot) *kit.Statement {
	name := state.PreviewService(&s.Rollout.Spec)
	switch {
	case name == "":
		return nil
	case s.Preview.Presence == kit.Absent:
		return state.Refuse(v1alpha1.ReasonInvalidService, "spec.strategy.blueGreen.previewService: the Service %q does not exist in this namespace; create it, or remove the field.", name)
	case s.Preview.Problem != "":
		return state.Refuse(v1alpha1.ReasonInvalidService, "spec.strategy.blueGreen.previewService: %s.", s.Preview.Problem)
	}
	return nil
}
