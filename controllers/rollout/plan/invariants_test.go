// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// check holds the invariants that are visible in one state of the world.
func (w *world) check() {
	w.t.Helper()
	if w.dep.absent {
		return
	}
	if w.split == nil || w.split.observed < 0 {
		w.checkWithoutSplit()
	} else {
		w.checkWithSplit()
	}
	if wt := w.ro.Status.Weight; wt != nil && (wt.Requested < 0 || wt.Requested > 100) {
		w.t.Errorf("S8: weight %d", wt.Requested)
	}
	if len(w.ro.Status.History) > maxHistory {
		w.t.Errorf("history has %d entries", len(w.ro.Status.History))
	}
}

// checkWithoutSplit: the root Service selects every pod, so no unverified version
// may have any, and somebody must answer.
func (w *world) checkWithoutSplit() {
	w.t.Helper()
	var available int32
	for _, rs := range w.rss {
		available += rs.available
		if rs.owner == OwnerRollout && rs.existing > 0 && w.routerName() != v1alpha1.RouterNone {
			w.t.Errorf("S1: pods of canary %s while the root Service selects them\n%s", rs.revision, w.tail())
		}
	}
	if available == 0 && w.answered && w.dep.replicas > 0 {
		w.t.Errorf("S1: nobody answers any more\n%s", w.tail())
	}
	w.answered = available > 0
}

// checkGrowth: a weight grows only when the pods for the new share are available,
// and only after the analysis passed the step before.
func (w *world) checkGrowth(r Route) {
	w.t.Helper()
	weight := r.Weight
	if w.split == nil || weight <= w.split.requested.Weight {
		return
	}
	rs := w.byRevision(w.services[v1alpha1.RoleCanary])
	if rs == nil || rs.available < canaryReplicas(weight, w.dep.replicas) {
		w.t.Errorf("S1: weight %d is asked for without pods for it\n%s", weight, w.tail())
	}
	if a := w.ro.Status.Analysis; w.split.requested.Weight > 0 && (a == nil || a.Verdict != "Pass") && w.ro.Spec.Analysis == nil {
		w.t.Errorf("S2: weight %d without a Pass\n%s", weight, w.tail())
	}
}

// checkWithSplit: each backend with a weight in effect has pods that answer, and
// the weight is one of the declared ones.
func (w *world) checkWithSplit() {
	w.t.Helper()
	s := w.split
	if rs := w.byRevision(w.services[v1alpha1.RoleCanary]); s.observed > 0 && !w.collapsing() {
		if rs == nil || rs.available == 0 {
			w.t.Errorf("S1: weight %d without pods of the canary\n%s", s.observed, w.tail())
		}
	}
	if rs := w.byRevision(w.services[v1alpha1.RoleStable]); s.observed < 100 && (rs == nil || rs.available == 0) {
		w.t.Errorf("S1: weight %d without pods of stable\n%s", s.observed, w.tail())
	}
	declared := []int32{0, 100}
	for _, step := range w.ro.Spec.Strategy.Steps {
		declared = append(declared, step.Weight)
	}
	if !slices.Contains(declared, s.requested.Weight) {
		w.t.Errorf("S3: weight %d is no step", s.requested.Weight)
	}
}

// collapsing is whether the test itself took the canary's pods away.
func (w *world) collapsing() bool {
	rs := w.byRevision(w.services[v1alpha1.RoleCanary])
	return rs == nil || w.broken[rs.template]
}

// checkQuiet: nothing to do means nothing is written (S10, L4).
func (w *world) checkQuiet() {
	w.t.Helper()
	w.run(int(quietTime.Seconds()) + 5) // figures that were withheld
	before := len(w.log)
	for range 120 {
		w.now = w.now.Add(1e9)
		if w.reconcile() {
			w.t.Fatalf("S10: something is written although nothing happened:\n%s", w.tail())
		}
	}
	if len(w.log) != before {
		w.t.Errorf("S10: not silent:\n%s", w.tail())
	}
	if !w.due.IsZero() && !w.gone {
		w.t.Errorf("L4: the operator wants to look again although nothing is to come:\n%s", w.tail())
	}
}

// end is what has to be the same however the operator crashed.
type end struct {
	Template, Stable, Ready string
	Paused                  bool
	Pods                    map[string]int32
	Services, Split         bool
	Outcomes                []string
}

func (w *world) end() end {
	e := end{
		Template: w.dep.template, Paused: w.dep.paused, Pods: map[string]int32{},
		Services: len(w.services) > 0, Split: w.split != nil,
	}
	if s := w.ro.Status.Stable; s != nil {
		e.Stable = s.Revision
	}
	for _, rs := range w.rss {
		if rs.existing > 0 {
			e.Pods[rs.template] = rs.existing
		}
	}
	for _, c := range w.ro.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			e.Ready = c.Reason
		}
	}
	for _, h := range w.ro.Status.History {
		e.Outcomes = append(e.Outcomes, h.Outcome+" "+h.Revision)
	}
	return e
}
