// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/record"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// check holds the invariants that are visible in one state of the world.
func (w *world) check() {
	w.t.Helper()
	if w.ro.Spec.Services != nil && w.split != nil && w.split.observed > 0 && w.pair.CanaryReady == 0 && !w.tampered {
		w.t.Fatalf("S1: weight %d without pods of the canary\n%s", w.split.observed, w.tail())
	}
	if w.isDelegated() {
		w.checkDelegated()
	}
	if w.dep.absent {
		return
	}
	w.checkPreview()
	if w.dep.replicas == 0 {
		w.fromZero = true
	} else {
		w.scaledFromZero()
	}
	if w.split == nil || !w.split.cutOver {
		w.checkWithoutSplit()
	} else {
		w.tampered = w.tampered && (w.split.deleting || w.split.served != w.split.generation)
		w.checkWithSplit()
	}
	if st := &w.ro.Status; st.Decision != nil && st.Decision.Action == v1alpha1.ActionRollBack {
		w.aborted = strings.TrimLeft(st.Decision.Revision, "sk")
	} else {
		w.aborted = ""
	}
	w.checkRejected()
	if wt := w.ro.Status.Weight; wt != nil && (wt.Requested < 0 || wt.Requested > 100) {
		w.t.Fatalf("S8: weight %d", wt.Requested)
	}
	if len(w.ro.Status.History) > record.MaxHistory {
		w.t.Fatalf("history has %d entries", len(w.ro.Status.History))
	}
}

// checkRejected: what was rolled back does not come up by any way, until there is
// another template or a user wants it again (S4).
func (w *world) checkRejected() {
	w.t.Helper()
	if w.aborted != "" {
		w.rejected = w.aborted
	}
	if c := w.ro.Status.Control; w.aborted == "" && c != nil && c.Ignored == "" && c.Control.Action == v1alpha1.ControlRetry && strings.TrimLeft(c.Control.Revision, "sk") == w.rejected {
		w.rejected = "" // carried out only by now
	}
	for _, rs := range w.rss {
		if w.cameUpFromZero(rs) {
			w.rejected = "" // it is rolled out past Serin by now
		}
		if rs.template == w.rejected && rs.owner != kit.OwnerSerin && rs.replicas > 0 {
			w.t.Fatalf("S4: %s was rolled back and comes up again\n%s", rs.template, w.tail())
		}
	}
	if st := w.ro.Status.Stable; st != nil && w.rejected != "" && st.Revision == "s"+w.rejected {
		w.t.Fatalf("S4: %s was rolled back and is stable now\n%s", w.rejected, w.tail())
	}
}

// cameUpFromZero is whether the Deployment controller brought up its own ReplicaSet of
// a rejected version from zero just before Serin took it.
func (w *world) cameUpFromZero(rs *replicaSet) bool {
	d := w.ro.Status.Decision
	return w.racing && w.fromZero && d != nil && rs.revision == d.Revision && rs.template == w.rejected && rs.owner == kit.OwnerDeployment && rs.replicas > 0
}

// checkWithoutSplit: the root Service selects every pod, so no unverified version
// may have any, and some pods must answer.
func (w *world) checkWithoutSplit() {
	w.t.Helper()
	var available int32
	for _, rs := range w.rss {
		available += rs.available
		if rs.owner == kit.OwnerSerin && rs.existing > 0 && !w.byReplicas() && !w.tampered && !w.forced() {
			w.t.Fatalf("S1: pods of canary %s while the root Service selects them\n%s", rs.revision, w.tail())
		}
	}
	if available == 0 && w.answered && w.dep.replicas > 0 && !w.scaledFromZero() {
		w.t.Fatalf("S1: no pod answers any more\n%s", w.tail())
	}
	w.answered = available > 0
}

// forced is whether a deletion has waited for the router for long enough.
func (w *world) forced() bool {
	s, err := strategy.Parse(&w.ro.Spec, w.routerName(), nil, strategy.Metrics{})
	deleted := w.ro.DeletionTimestamp
	return err == nil && deleted != nil && !w.now.Before(deleted.Add(s.Deadline))
}

// checkAction: what an action must find when it is decided on.
func (w *world) checkAction(action kit.Action) {
	w.t.Helper()
	switch a := action.(type) {
	case state.ApplySplit:
		w.checkGrowth(a.Route)
	case state.SetDelegation:
		w.checkDelegation(a)
	case kit.ReleaseCanary:
		for _, rs := range w.rss {
			if rs.uid == a.UID && !w.saturated(rs) && !w.lost { // the last copy is taken as it is
				w.t.Fatalf("S1: canary %s is handed over with %d of %d pods\n%s", rs.name, rs.available, w.dep.replicas, w.tail())
			}
		}
	}
}

// checkGrowth: a weight grows only when nothing forbids it (windows, freezes,
// pauses), when the pods for the new share are available, and after the analysis
// passed the step before, or a user answers for it.
func (w *world) checkGrowth(r strategy.Route) {
	w.t.Helper()
	if w.split == nil || r.Exposure() <= w.split.requested.Exposure() || w.split.requested.Weight < 0 {
		return
	}
	if w.tampered { // what another actor removed is restored
		return
	}
	st := &w.ro.Status
	returning := st.Decision != nil && st.Decision.Reason == state.ReasonRollbackWindow
	if w.ro.Spec.Services != nil {
		return
	}
	if (len(w.freezes) > 0 || w.ro.Spec.Paused) && !returning {
		w.t.Fatalf("weight %s in a freeze or a pause\n%s", r, w.tail())
	}
	rs := w.byRevision(w.services[v1alpha1.RoleCanary])
	if w.dep.replicas > 0 && (rs == nil || rs.available < 1) {
		w.t.Fatalf("S1: weight %s is asked for without pods for it\n%s", r, w.tail())
	}
	if rs != nil && w.aborted == rs.template {
		w.t.Fatalf("S4: weight %s although %s was rolled back\n%s", r, rs.template, w.tail())
	}
	waived := len(st.Interventions) > 0 || w.ro.Spec.Analysis != nil || returning
	if w.split.requested.Weight > 0 && !w.passed && !waived {
		w.t.Fatalf("S2: weight %s without a Pass\n%s", r, w.tail())
	}
}

// checkWithSplit: each backend with a live weight has pods that answer, and
// the weight is one of the declared ones.
func (w *world) checkWithSplit() {
	w.t.Helper()
	s := w.split
	// What once answered must answer when the split is gone, whenever that was.
	w.answered = w.answered || !w.lost && slices.ContainsFunc(w.rss, func(rs *replicaSet) bool { return rs.available > 0 })
	if w.dep.replicas == 0 || w.scaledFromZero() {
		return
	}
	if rs := w.byRevision(w.services[v1alpha1.RoleCanary]); s.observed > 0 && !w.collapsing() {
		if rs == nil || rs.available == 0 {
			w.t.Fatalf("S1: weight %d without pods of the canary\n%s", s.observed, w.tail())
		}
	}
	if rs := w.byRevision(w.services[v1alpha1.RoleStable]); s.observed < 100 && len(s.requested.Matches) == 0 && !w.lost && (rs == nil || rs.available == 0) {
		w.t.Fatalf("S1: weight %d without pods of stable\n%s", s.observed, w.tail())
	}
	if !w.declared(s.requested) {
		w.t.Fatalf("S3: weight %s is no step\n%s", s.requested, w.tail())
	}
}

// scaledFromZero is whether the stable version's pods are only just coming up.
func (w *world) scaledFromZero() bool {
	for _, rs := range w.rss {
		stable := w.ro.Status.Stable == nil || w.ro.Status.Stable.Revision == rs.revision
		if rs.owner == kit.OwnerDeployment && rs.replicas > 0 && rs.available > 0 && stable {
			w.fromZero = false
		}
	}
	return w.fromZero
}

// declared reports whether a route is one of the steps, nothing, everything, or on
// the way back from one.
func (w *world) declared(r strategy.Route) bool {
	if r.Equal(strategy.Route{}) || r.Equal(strategy.Route{Weight: 100}) || r.Weight < 0 {
		return true
	}
	if d := w.ro.Status.Decision; d != nil && d.Action == v1alpha1.ActionRollBack && w.ro.Spec.Strategy.RollBackOver != "" {
		return r.Weight <= d.Weight
	}
	w.everSteps()
	return slices.ContainsFunc(w.routes, r.SameRequests)
}

// everSteps collects every step that was ever declared: an edit takes effect at
// the next look.
func (w *world) everSteps() {
	s, err := strategy.Parse(&w.ro.Spec, w.routerName(), nil, strategy.Metrics{})
	if err != nil {
		return // it declares nothing
	}
	for _, step := range s.Steps {
		if !slices.ContainsFunc(w.routes, step.Equal) {
			w.routes = append(w.routes, step.Route)
		}
	}
	if held := (strategy.Route{Weight: strategy.HoldoutWeight}); s.Early && !slices.ContainsFunc(w.routes, held.Equal) {
		w.routes = append(w.routes, held)
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
	w.checkPreviewRestored()
	before := len(w.log)
	for range 120 {
		w.now = w.now.Add(1e9)
		if w.reconcile() {
			w.t.Fatalf("S10: something is written although nothing happened:\n%s", w.tail())
		}
	}
	if len(w.log) != before {
		w.t.Fatalf("S10: not silent:\n%s", w.tail())
	}
	if !w.due.IsZero() && !w.gone {
		w.t.Fatalf("L4: the operator wants to look again although nothing is to come:\n%s", w.tail())
	}
}

// end is what has to be the same however the operator crashed.
type end struct {
	Template, Stable, Ready string
	Paused                  bool
	Pods                    map[string]int32
	Services, Split         bool
	Outcomes                []string
	Canary                  string
	Preview                 string
}

func (w *world) end() end {
	e := end{
		Template: w.dep.template, Paused: w.dep.paused, Pods: map[string]int32{},
		Services: len(w.services) > 0, Split: w.split != nil,
	}
	if s := w.ro.Status.Stable; s != nil {
		e.Stable = s.Revision
	}
	e.Canary = w.cr.end()
	if w.preview != nil {
		e.Preview = w.preview.revision
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
