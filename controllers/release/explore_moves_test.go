// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
)

// explored is a world in which every actor moves by itself, and the operator is
// seen between any two of its writes.
type explored struct {
	*world
	begin func(*world)

	actions, crashes int // that may still happen

	pending   []kit.Action // of the present pass
	seen      seen
	measuring bool
	judged    judged
}

// seen is what the present pass observed, as far as its writes name versions.
type seen struct {
	dep        fakeDeployment
	split      int // its version; 0: there was none
	generation int64
	deleting   bool
}

// explorations are the states to begin with.
var explorations = []struct {
	name  string
	begin func(*world)
}{
	{"one version is stable, the admission policy in force", func(w *world) {
		w.guard = true
		w.ready()
	}},
	{"an older version is stable again, no admission policy", func(w *world) {
		w.olderIsStable()
	}},
	{"an older version is stable again, scaled to zero", func(w *world) {
		w.guard = true
		w.olderIsStable()
		w.dep.replicas = 0
		w.run(60)
	}},
}

var templates = []string{"v1", "v2", "v3"}

func stepsOf(weights ...int32) []v1alpha1.Step {
	var out []v1alpha1.Step
	for _, w := range weights {
		out = append(out, v1alpha1.Step{Weight: w, Hold: v1alpha1.Duration(exploredHold.String())})
	}
	out[1].Until = v1alpha1.UntilManual
	return out
}

func newExplored(tb testing.TB, begin func(*world), actions int) *explored {
	tb.Helper()
	w := newWorld(referee{tb})
	w.mute, w.racing = true, true
	w.dep.replicas, w.podDelay, w.routerLag = 2, 1, 0
	w.ro.Spec.ProgressDeadline = v1alpha1.Duration(exploredDeadline.String())
	w.ro.Spec.Strategy.Steps = []v1alpha1.Step{{Weight: 50, Hold: "0s"}}
	w.ro.Spec.Analysis = &v1alpha1.Analysis{MinSuccessRate: "50%", ConsecutiveFailureLimit: new(int32(1))}
	begin(w)
	w.ro.Spec.Strategy.Steps = stepsOf(20, 50, 80)
	w.windows, w.routes, w.dirty, w.reportedAt = nil, nil, true, time.Time{}
	w.putOff = nil
	w.passed, w.tampered = false, false
	x := &explored{world: w, begin: begin, actions: actions, crashes: 1}
	x.judged.read(w.ro.Status.Analysis)
	return x
}

func (x *explored) clone() *explored {
	c := *x
	c.world = x.world.clone()
	return &c
}

func (x *explored) sameSplit() bool { return x.splitVersion() == x.seen.split }

func (x *explored) splitVersion() int {
	if x.split == nil {
		return 0
	}
	return x.split.version
}

func (x *explored) sameRollout() bool {
	return x.ro.Generation == x.seen.generation && (x.ro.DeletionTimestamp != nil) == x.seen.deleting
}

// move lets one actor make one move, and looks at what came of it.
func (x *explored) move(m int) {
	moves[m].do(x)
	if !x.gone {
		x.check()
	}
}

// a move is what one actor does in one go.
type move struct {
	name string
	can  func(*explored) bool
	do   func(*explored)
	// quiet moves happen when no actor disturbs, in this order.
	quiet bool
	// last is whether nothing else will happen when this changes nothing.
	last bool
}

var moves = slices.Concat([]move{
	{name: "the operator writes", quiet: true, can: func(x *explored) bool { return len(x.pending) > 0 }, do: (*explored).act},
	{name: "the operator looks", quiet: true, can: (*explored).awake, do: (*explored).decide},
	{name: "the Deployment controller syncs", quiet: true, can: (*explored).alive, do: func(x *explored) { x.deploymentController() }},
}, podMoves(4), []move{
	{name: "the router acts", quiet: true, can: func(x *explored) bool { return !x.gone && x.split != nil }, do: func(x *explored) { x.router() }},
	{name: "traffic is good", quiet: true, last: true, can: (*explored).measured, do: func(x *explored) { x.pass(1000, 0) }},
	{name: "time passes without traffic", quiet: true, can: (*explored).idle, do: func(x *explored) { x.pass(0, 0) }},
	{name: "traffic is bad", can: (*explored).measured, do: func(x *explored) { x.pass(1000, 1000) }},
	{name: "the operator restarts", can: (*explored).mayCrash, do: (*explored).crash},
	{name: "the operator is down until something is due", can: func(x *explored) bool { return x.mayCrash() && x.due.After(x.now) }, do: func(x *explored) {
		x.now = x.due
		x.crash()
	}},
}, actions())

func (x *explored) alive() bool { return !x.gone }

func (x *explored) awake() bool {
	return !x.gone && len(x.pending) == 0 && (x.dirty || !x.due.IsZero() && !x.now.Before(x.due))
}

func (x *explored) decide() {
	bad := slices.ContainsFunc(x.windows, func(w analysis.Window) bool { return w.Canary.Failures > 0 })
	x.seen = seen{dep: x.dep, split: x.splitVersion(), generation: x.ro.Generation, deleting: x.ro.DeletionTimestamp != nil}
	before := withoutFigures(&x.ro.Status)
	d, _ := x.look()
	after := withoutFigures(&x.ro.Status)
	x.judged.read(x.ro.Status.Analysis)
	// Nothing is withheld, and every look is in time: else there are only more times to wait.
	x.forget()
	// A write of the status brings the next look only where more than sentences and
	// figures for users changed: they are no part of what distinguishes states.
	x.pending, x.dirty, x.measuring = d.Actions, !sameStatus(before, after), d.Measure
	for _, a := range d.Actions {
		x.checkAction(a)
	}
	x.checkBadSample(bad)
	if !d.Measure {
		x.windows = nil
	}
	if a := x.ro.Status.Analysis; a != nil && a.LastWindowEnd != nil {
		i := slices.IndexFunc(x.windows, func(w analysis.Window) bool { return w.End.After(a.LastWindowEnd.Time) })
		if i < 0 {
			i = len(x.windows)
		}
		x.windows = x.windows[i:]
	}
}

// checkBadSample: a bad sample takes the canary's traffic away in the very pass that
// sees it (L2), whatever else goes on.
func (x *explored) checkBadSample(bad bool) {
	if d := x.ro.Status.Decision; !bad || d != nil && (x.handedOver() || d.Action == v1alpha1.ActionRollBack) {
		return
	}
	if x.split == nil || x.split.deleting || x.split.requested.Weight == 0 || slices.Contains(actionTexts(x.pending), state.ApplySplit{}.String()) {
		return
	}
	x.t.Fatalf("L2: a bad sample and weight %s", x.split.requested)
}

func actionTexts(actions []kit.Action) []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.String())
	}
	return out
}

// act writes what comes next. The first conflict ends the pass.
func (x *explored) act() {
	a := x.pending[0]
	x.pending, x.dirty = x.pending[1:], true
	if x.write(a) {
		x.say("  - %s", a)
		return
	}
	x.say("  - conflict: %s", a)
	x.pending = nil
}

// write carries an action out as the shell does: with the versions that were seen.
func (x *explored) write(action kit.Action) bool {
	same := true
	switch a := action.(type) {
	case kit.AddFinalizer, kit.RemoveFinalizer:
		same = x.sameRollout()
	case state.SetPaused:
		same = a.Paused || x.dep == x.seen.dep
	case state.RestoreDeployment:
		same = a.Paused || x.dep == x.seen.dep
	case state.ApplySplit:
		same = x.sameSplit()
	case kit.DeleteSplit:
		same = x.split == nil || x.sameSplit()
	case state.CreateCanary:
		if x.byRevision(a.Revision) != nil {
			return false
		}
		rs := x.addReplicaSet(x.seen.dep.template, a.Revision, kit.OwnerSerin, a.Replicas)
		rs.desired = x.seen.dep.replicas
		return true
	}
	return same && x.apply(action)
}

// measured is whether traffic is being compared.
func (x *explored) measured() bool {
	s := x.split
	return x.quiet() && x.measuring && s != nil && s.served == s.generation && s.observed == s.requested.Weight && !x.since().IsZero()
}

// quiet is whether the operator has nothing to do but wait.
func (x *explored) quiet() bool { return !x.gone && len(x.pending) == 0 && !x.awake() }

func (x *explored) idle() bool {
	return x.quiet() && (!x.due.IsZero() || x.measured())
}

// pass lets time pass until something is due, or a window of traffic is over.
func (x *explored) pass(requests, failures int64) {
	from := x.now
	x.now = x.due
	if end := from.Add(exploredWindow); x.measured() && (x.due.IsZero() || end.Before(x.due)) {
		x.now = end
	}
	if requests == 0 {
		return
	}
	w := analysis.Window{Start: from, End: x.now, Weight: x.split.observed}
	share := int64(w.Weight)
	w.Canary = analysis.Variant{Requests: requests * share / 100, Failures: failures * share / 100}
	w.Stable = analysis.Variant{Requests: requests * (100 - share) / 100}
	x.windows, x.dirty = append(x.windows, w), true
}

func (x *explored) mayCrash() bool { return !x.gone && x.crashes > 0 }

// crash ends the operator's process: what it was about to write, what it had measured
// and what it knew of itself are lost.
func (x *explored) crash() {
	x.crashes--
	x.pending, x.windows, x.measuring = nil, nil, false
	x.due, x.dirty = time.Time{}, true
}

// podMoves let the pods of one ReplicaSet come, go, and get ready one by one.
func podMoves(n int) []move {
	var out []move
	for i := range n {
		out = append(out, move{name: fmt.Sprintf("pods of ReplicaSet %d", i+1), quiet: true, can: func(x *explored) bool {
			return !x.gone && i < len(x.rss) && !x.rss[i].settled(x.broken[x.rss[i].template])
		}, do: func(x *explored) { x.podsOf(x.rss[i]) }})
	}
	return out
}

func (rs *replicaSet) settled(broken bool) bool {
	return rs.existing == rs.replicas && (rs.available == rs.existing || broken)
}

func (x *explored) podsOf(rs *replicaSet) {
	if rs.existing != rs.replicas {
		rs.existing = rs.replicas
		rs.available = min(rs.available, rs.existing)
	} else {
		rs.available++
	}
	x.serve(rs)
	x.touch(rs)
}

// actions are what users do, and what happens to pods.
func actions() []move {
	var out []move
	add := func(name string, can func(*explored) bool, do func(*explored)) {
		out = append(out, move{name: name, can: func(x *explored) bool { return !x.gone && x.actions > 0 && can(x) }, do: func(x *explored) {
			x.actions--
			x.dirty = true
			do(x)
		}})
	}
	for _, template := range templates {
		add("template "+template, func(x *explored) bool { return x.dep.template != template }, func(x *explored) { x.setTemplate(template) })
	}
	for n := range int32(3) {
		add(fmt.Sprint("scale to ", n), func(x *explored) bool { return x.dep.replicas != n }, func(x *explored) { x.dep.replicas = n })
	}
	for _, action := range []v1alpha1.ControlAction{
		v1alpha1.ControlAbort, v1alpha1.ControlPromote, v1alpha1.ControlSkip, v1alpha1.ControlPromoteFull, v1alpha1.ControlRetry,
	} {
		add(string(action), func(x *explored) bool {
			c := x.ro.Spec.Control
			return x.ro.DeletionTimestamp == nil && (c == nil || c.Action != action || c.Revision != x.subject())
		}, func(x *explored) { x.control(action, x.subject()) })
	}
	add("edit the steps", func(x *explored) bool { return x.ro.Spec.Strategy.Steps[0].Weight == 20 }, func(x *explored) {
		x.edit("other steps", func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps = stepsOf(30, 50) })
	})
	add("pause or go on", (*explored).alive, func(x *explored) {
		x.edit("pause or go on", func(s *v1alpha1.RolloutSpec) { s.Paused = !s.Paused })
	})
	add("delete the Rollout", func(x *explored) bool { return x.ro.DeletionTimestamp == nil }, func(x *explored) { x.remove() })
	add("the canary's pods crash", func(x *explored) bool { return x.crashing() != nil }, func(x *explored) {
		rs := x.crashing()
		x.broken[rs.template], rs.available = true, 0
		x.touch(rs)
	})
	return out
}

func (x *explored) crashing() *replicaSet {
	for _, rs := range x.rss {
		if rs.owner == kit.OwnerSerin && rs.available > 0 {
			return rs
		}
	}
	return nil
}

// subject is the revision that a user decides about.
func (x *explored) subject() string {
	if c := x.ro.Status.Canary; c != nil {
		return c.Revision
	}
	return "s" + x.dep.template
}

// checkRest: where nothing happens any more, it is the right end.
func (x *explored) checkRest() {
	if x.gone {
		x.checkGone()
		return
	}
	if x.ro.DeletionTimestamp != nil {
		x.t.Fatalf("L3: the Rollout is not let go: %s", readyMessage(x.ro))
	}
	st, current := &x.ro.Status, x.newest()
	released := st.Stable != nil && current != nil && st.Stable.Revision == current.revision
	step := st.Step
	ok := false
	switch {
	case x.is(v1alpha1.ReasonStable):
		ok = released && x.split == nil && len(x.services) == 0 && current.available == x.dep.replicas && x.dep.paused == !x.guard
	case x.is(v1alpha1.ReasonRolledBack):
		stable := x.byRevision(st.Stable.Revision)
		ok = !released && x.split == nil && len(x.services) == 0 && x.dep.paused && stable.available == x.dep.replicas
	case x.is(v1alpha1.ReasonPaused):
		ok = x.ro.Spec.Paused
	case x.is(v1alpha1.ReasonWaitingForApproval):
		ok = step != nil && step.Index == 1 && step.PassedAt == nil
	case x.is(v1alpha1.ReasonWaitingForPods):
		ok = x.dep.replicas == 0
	case x.is(v1alpha1.ReasonDeploying), x.is(v1alpha1.ReasonUnguardedChange):
		ok = x.broken[x.dep.template] // it came up while the operator was down
	}
	if !ok {
		x.t.Fatalf("L1: a wrong end: %s", readyMessage(x.ro))
	}
}

// checkGone: what was Serin's is gone, or the Deployment's.
func (x *explored) checkGone() {
	for _, rs := range x.rss {
		if rs.owner == kit.OwnerSerin && rs.replicas > 0 {
			x.t.Fatalf("L3: canary %s is left", rs.name)
		}
	}
	if x.split != nil || len(x.services) > 0 || x.dep.managedBy != "" {
		x.t.Fatalf("L3: something is left: split %v, services %v, managed %v", x.split, x.services, x.dep.managedBy)
	}
}
