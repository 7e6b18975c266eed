// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// delegatedCanary is a CanaryRelease and its controller: what it gets counts for the
// content that it is meant for, and every change takes some time.
type delegatedCanary struct {
	uid, content string
	// names is the Rollout in spec.delegation; delegation is the rest of that, for a content.
	names      string
	delegation state.SetDelegation
	forContent string
	held       bool
	// byUser is spec.transition.
	byUser v1alpha1.CanaryTransition
	// pods that are ready, and of which content.
	ready    int32
	of       string
	age      int
	decision *v1alpha1.CanaryDecision
	deleting bool
	helm     int
	stuck    bool // the upgrade of an adoption fails
	broken   bool // its pods can't answer any more
}

// end is what has to be the same however the operator crashed.
func (c *delegatedCanary) end() string {
	switch {
	case c == nil:
		return ""
	case c.decision == nil:
		return fmt.Sprintf("%s %s %s", c.uid, c.content, c.delegation)
	}
	return fmt.Sprintf("%s %s %s %v", c.uid, c.content, c.decision.Transition, c.decision.EndedAt != nil)
}

func (w *world) isDelegated() bool { return w.ro.Spec.WorkloadRef.Kind == v1alpha1.KindCanaryRelease }

// delegated is a Rollout of a CanaryRelease that does not exist yet.
func (w *world) delegated() {
	w.dep.absent = true
	w.ro.Spec.WorkloadRef = v1alpha1.WorkloadReference{APIVersion: "serin.dev/v1alpha1", Kind: v1alpha1.KindCanaryRelease, Name: "try"}
	w.untilReason(v1alpha1.ReasonStable)
}

// tries is what kubectl apply of a CanaryRelease does.
func (w *world) tries(uid, content string) {
	w.cr = &delegatedCanary{uid: uid, content: content, of: content, names: w.ro.Name, helm: 4}
	w.split, w.dirty, w.passed = &split{observed: -1, requested: strategy.Route{}, generation: 1}, true, false
	w.say("user: a CanaryRelease of %s", content)
}

// begins waits until the steps have taken v2 up to a weight.
func (w *world) begins(weight int32) {
	w.t.Helper()
	w.delegated()
	w.tries("a", "v2")
	w.untilWeight(weight)
}

// delegated to the CanaryRelease, about its present content.
func (c *delegatedCanary) wants() (weight int32, t v1alpha1.CanaryTransition) {
	if c.forContent == c.content {
		weight, t = c.delegation.Weight, c.delegation.Transition
	}
	return weight, t
}

func (w *world) observeDelegated(o *state.Observation) {
	o.Workload = state.Workload{}
	o.Split = state.Split{Split: kit.Split{Presence: kit.Absent}, Requested: strategy.Route{Weight: -1}, Observed: -1}
	c := w.cr
	if c == nil {
		o.Delegated.Presence = kit.Absent
		return
	}
	weight, transition := c.wants()
	o.Delegated = state.Delegated{
		Presence: kit.Present, Deleting: c.deleting, Rollout: c.names, Revision: c.uid + "-" + c.content, Stable: fmt.Sprintf("helm-%d", c.helm),
		Ready: c.ready, Replicas: 2, Transition: transition, Held: c.held, Decision: c.decision, Unshared: w.split == nil, Message: "It says so.",
	}
	o.Split = state.Split{Split: kit.Split{Presence: kit.Present, Ours: c.names == w.ro.Name, Deleting: c.deleting}, Requested: strategy.Route{Weight: weight}, Observed: -1}
	if s := w.split; s != nil {
		o.Split.Observed = s.observed
		o.Split.Programmed = s.served == s.generation && s.observed == weight
	}
}

// setDelegation is what the API server makes of what the Rollout applies.
func (w *world) setDelegation(action kit.Action) {
	w.t.Helper()
	if w.cr == nil || w.cr.names != w.ro.Name {
		w.t.Fatalf("%s: the CanaryRelease does not name the Rollout\n%s", action, w.tail())
	}
	w.dirty, w.cr.held = true, false
	w.cr.delegation, w.cr.forContent = state.SetDelegation{}, ""
	if a, ok := action.(state.SetDelegation); ok {
		w.passed = w.passed && w.cr.delegation.Weight == a.Weight
		w.cr.delegation, w.cr.forContent, w.cr.held = a, w.cr.content, true
	}
}

// canaryController is what the controller of CanaryReleases does.
func (w *world) canaryController() {
	c := w.cr
	if c == nil {
		return
	}
	weight, t := c.wants()
	if c.byUser != "" {
		t = c.byUser
	}
	switch over := c.decision != nil && c.decision.EndedAt != nil; {
	case over && c.deleting:
		w.cr, w.split, w.dirty = nil, nil, true
		w.say("canary controller: the CanaryRelease is gone")
		return
	case over:
		return
	case c.decision == nil && c.deleting:
		w.concludes(v1alpha1.CanaryTransitionDeprecated, v1alpha1.ReasonDeleting, "the CanaryRelease is being deleted")
	case (c.decision == nil || c.stuck) && t != "" && (c.decision == nil || c.decision.Transition != t):
		w.concludes(t, v1alpha1.ReasonRequested, "a user wants it")
	}
	if c.decision != nil && w.concluded() {
		return
	}
	w.canaryPods()
	w.weighs(weight)
}

func (w *world) concludes(t v1alpha1.CanaryTransition, reason v1alpha1.Reason, why string) {
	w.cr.decision = &v1alpha1.CanaryDecision{Transition: t, Reason: reason, Message: why}
	w.dirty = true
	w.say("canary controller: %s, since %s", t, why)
}

// concluded ends the CanaryRelease once its traffic is where it has to be.
func (w *world) concluded() bool {
	c := w.cr
	settled := w.split.served == w.split.generation && w.split.lag >= w.routerLag
	adopted := c.decision.Transition == v1alpha1.CanaryTransitionAdopted
	switch {
	case adopted && (c.stuck || w.split.observed != 100), !adopted && w.split.observed > 0, !settled:
		return false
	case adopted:
		c.helm++
	}
	c.decision.EndedAt, c.ready, w.split, w.dirty = new(metav1.NewMicroTime(w.now)), 0, nil, true
	w.say("canary controller: ended")
	return true
}

// canaryPods replaces the pods of another content while they get nothing.
func (w *world) canaryPods() {
	c := w.cr
	c.age++
	before := c.ready
	switch {
	case c.broken:
		c.ready = 0
	case c.of != c.content && w.split.observed <= 0:
		c.of, c.ready, c.age = c.content, 0, 0
	case c.of == c.content && c.age > w.podDelay:
		c.ready = 2
	}
	w.dirty = w.dirty || before != c.ready
}

// weighs writes what the canary gets.
func (w *world) weighs(weight int32) {
	c := w.cr
	switch {
	case c.ready == 0 || c.of != c.content:
		weight = 0
	case c.decision != nil && c.decision.Transition == v1alpha1.CanaryTransitionAdopted:
		weight = 100
	case c.decision != nil:
		weight = 0
	}
	if w.split.requested.Weight != weight {
		w.split.requested, w.split.lag = strategy.Route{Weight: weight}, 0
		w.split.generation++
	}
}

// checkDelegated: no content gets what another one has earned.
func (w *world) checkDelegated() {
	w.t.Helper()
	if w.cr == nil || w.split == nil {
		return
	}
	if w.split.observed > 0 && w.cr.ready == 0 && !w.cr.broken {
		w.t.Fatalf("S1: weight %d without pods of the canary\n%s", w.split.observed, w.tail())
	}
	if d := w.ro.Status.Decision; d != nil && d.Action == v1alpha1.ActionRollBack && w.cr.decision == nil && w.cr.delegation.Transition == v1alpha1.CanaryTransitionAdopted {
		w.t.Fatalf("S4: what was rolled back is to be adopted\n%s", w.tail())
	}
}

// checkDelegation: the weight grows, and the canary is adopted, only on a Pass.
func (w *world) checkDelegation(a state.SetDelegation) {
	w.t.Helper()
	had, _ := w.cr.wants()
	waived := len(w.ro.Status.Interventions) > 0
	if a.Weight > had && had > 0 && !w.passed && !waived && !w.tampered {
		w.t.Fatalf("S2: weight %d without a Pass\n%s", a.Weight, w.tail())
	}
	if a.Transition == v1alpha1.CanaryTransitionAdopted && (w.split == nil || w.split.observed != 100 || w.cr.of != w.cr.content) {
		w.t.Fatalf("S3: it is adopted before it has all traffic\n%s", w.tail())
	}
	if bad := w.failures[w.cr.content] > 0; bad && a.Transition == v1alpha1.CanaryTransitionAdopted && !waived {
		w.t.Fatalf("S2: a bad canary is adopted\n%s", w.tail())
	}
	if !w.declared(strategy.Route{Weight: a.Weight}) {
		w.t.Fatalf("S3: weight %d is no step\n%s", a.Weight, w.tail())
	}
}
