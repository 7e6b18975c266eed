// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis/judge"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/deployment"
	"github.com/serin-dev/serin/controllers/release/state"
)

// clone copies what a move of any actor can change. Statuses and specs are replaced
// as a whole, and never changed in place, so the copies may share them.
func (w *world) clone() *world {
	c := *w
	ro := *w.ro
	c.ro = &ro
	c.rss = make([]*replicaSet, len(w.rss))
	for i, rs := range w.rss {
		x := *rs
		c.rss[i] = &x
	}
	if w.split != nil {
		s := *w.split
		c.split = &s
	}
	if w.preview != nil {
		p := *w.preview
		c.preview = &p
	}
	c.services, c.broken, c.served = maps.Clone(w.services), maps.Clone(w.broken), maps.Clone(w.served)
	c.windows, c.routes = slices.Clip(w.windows), slices.Clip(w.routes)
	return &c
}

// key is equal for two worlds that nothing can distinguish from now on. Times count
// from now, and only as long as an actor still waits for them; names of objects are
// their place; figures and sentences for users don't count.
type key [16]byte

func (x *explored) key(scratch *[]byte) key {
	e := encoder{buf: (*scratch)[:0], x: x}
	e.deployment()
	e.replicaSets()
	e.traffic()
	e.rollout()
	e.status(&x.ro.Status)
	e.operator()
	*scratch = e.buf
	sum := sha256.Sum256(e.buf)
	return key(sum[:16])
}

type encoder struct {
	buf []byte
	x   *explored
}

func (e *encoder) word(s string) { e.buf = append(append(e.buf, s...), 0) }

func (e *encoder) number(n int64) { e.buf = append(strconv.AppendInt(e.buf, n, 36), 1) }

func (e *encoder) flags(flags ...bool) {
	for _, f := range flags {
		b := byte('-')
		if f {
			b = '+'
		}
		e.buf = append(e.buf, b)
	}
}

// since is how long ago something was, up to a limit from which on it does not matter.
func (e *encoder) since(t time.Time, limit time.Duration) {
	if t.IsZero() {
		e.word("never")
		return
	}
	e.number(int64(min(e.x.now.Sub(t), limit)))
}

func (e *encoder) deployment() {
	d := e.x.dep
	e.word(d.template)
	e.number(int64(d.replicas))
	e.flags(d.paused, d.held, d.managedBy != "")
}

func (e *encoder) replicaSets() {
	e.number(int64(len(e.x.rss)))
	for _, rs := range e.x.rss {
		e.word(rs.revision)
		e.word(rs.template)
		for _, n := range []int32{int32(rs.owner), rs.replicas, rs.existing, rs.available, rs.desired} {
			e.number(int64(n))
		}
		e.flags(e.x.broken[rs.template], e.x.served[rs.template] == rs.uid, e.x.isPromoted(rs))
	}
	for _, template := range templates {
		e.flags(e.x.served[template] != "")
	}
}

func (e *encoder) traffic() {
	e.word(e.x.services[v1alpha1.RoleStable])
	e.word(e.x.services[v1alpha1.RoleCanary])
	s := e.x.split
	if e.flags(s != nil); s != nil {
		e.number(int64(s.requested.Weight))
		e.number(int64(s.observed))
		e.flags(s.served == s.generation, s.deleting, s.cutOver)
	}
	if p := e.x.preview; p != nil {
		e.word(p.revision)
		e.word(p.endpoints)
		e.since(p.since, deployment.PreviewSettle)
	}
	e.number(int64(len(e.x.windows)))
	for _, w := range e.x.windows {
		e.since(w.Start, time.Hour)
		e.since(w.End, time.Hour)
		e.flags(w.Canary.Failures > 0)
	}
}

// rollout is what users wrote.
func (e *encoder) rollout() {
	ro := e.x.ro
	e.flags(ro.Spec.Paused, len(ro.Finalizers) > 0, ro.DeletionTimestamp != nil, ro.Generation == ro.Status.ObservedGeneration)
	if ro.DeletionTimestamp != nil {
		e.since(ro.DeletionTimestamp.Time, exploredDeadline)
	}
	e.number(int64(len(ro.Spec.Strategy.Steps)))
	for _, s := range ro.Spec.Strategy.Steps {
		e.number(int64(s.Weight))
	}
	c := ro.Spec.Control
	if e.flags(c != nil); c != nil {
		e.word(c.Revision)
		e.word(string(c.Action))
	}
}

func (e *encoder) status(st *v1alpha1.RolloutStatus) {
	for _, v := range []*v1alpha1.VersionStatus{st.Stable, st.Canary} {
		if e.flags(v != nil); v != nil {
			e.word(v.Revision)
			e.flags(v.StartedAt != nil)
		}
	}
	e.number(int64(len(st.Conditions)))
	for _, c := range st.Conditions {
		e.word(c.Reason)
		e.word(string(c.Status))
	}
	e.step(st.Step)
	w := st.Weight
	if e.flags(w != nil); w != nil {
		e.number(int64(w.Requested))
		e.flags(w.Observed != nil, w.Since != nil)
		if w.Observed != nil {
			e.number(int64(*w.Observed))
		}
	}
	d := st.Decision
	if e.flags(d != nil); d != nil {
		e.word(d.Revision)
		e.word(string(d.Action) + d.Reason)
		e.flags(d.HandedOver)
	}
	e.evidence(st.Analysis)
	c := st.Control
	if e.flags(c != nil); c != nil {
		e.word(c.Control.Revision)
		e.word(string(c.Control.Action))
	}
	e.flags(len(st.Interventions) > 0)
}

func (e *encoder) step(s *v1alpha1.StepStatus) {
	if e.flags(s != nil); s == nil {
		return
	}
	e.number(int64(s.Index)<<16 | int64(s.Of)<<8 | int64(s.Weight))
	e.flags(s.PreparedAt != nil, s.PassedAt != nil, s.AnalysisSkipped, s.FailureAccepted, s.NotifiedAt != nil, s.ProgrammedAt != nil, s.InterruptedAt != nil)
	switch {
	case s.InterruptedAt != nil:
		e.since(s.InterruptedAt.Time, exploredDeadline)
		e.since(s.ProgrammedAt.Time, exploredHold)
	case s.ProgrammedAt != nil:
		e.since(s.ProgrammedAt.Time, exploredHold)
	case s.PreparedAt != nil:
		e.since(s.PreparedAt.Time, exploredDeadline)
	}
}

// evidence is what the judge remembers, as far as it matters where every window is
// either all good or all bad: one bad window misses the limit, and then it is over.
func (e *encoder) evidence(a *v1alpha1.AnalysisStatus) {
	if e.flags(a != nil); a == nil {
		return
	}
	e.word(a.Verdict)
	e.word(a.Reason)
	if e.flags(a.LastWindowEnd != nil); a.LastWindowEnd != nil {
		e.since(a.LastWindowEnd.Time, judge.Defaults().StaleAfter+time.Second)
	}
	j := &e.x.judged
	e.flags(j.first > 0, j.last > 0, j.weight > 0, j.weight < 100)
	for _, n := range j.counts {
		e.flags(n > 0)
	}
	e.number(min(j.last-j.first, int64(judge.Defaults().Startup.For)))
	e.word(j.failed)
}

// judged is what the judge keeps in the status, as far as it matters here.
type judged struct {
	text                string
	first, last, weight int64
	failed              string
	counts              [6]int64
}

// read takes the counts from what the judge wrote. It panics when the judge's state has
// another form by now: then find out anew what of it matters.
func (j *judged) read(a *v1alpha1.AnalysisStatus) {
	if a == nil || a.State == j.text {
		return
	}
	var s judge.State
	if err := s.UnmarshalText([]byte(a.State)); err != nil && a.State != "" {
		panic(err)
	}
	v := reflect.ValueOf(s)
	step := v.FieldByName("step")
	*j = judged{
		text: a.State, first: v.FieldByName("first").Int(), last: v.FieldByName("last").Int(), weight: v.FieldByName("weight").Int(),
		failed: v.FieldByName("failed").String(),
	}
	for i, counted := range []reflect.Value{step, step.FieldByName("warm")} {
		j.counts[3*i] = counted.FieldByName("windows").Int()
		j.counts[3*i+1] = counted.FieldByName("canary").FieldByName("requests").Int()
		j.counts[3*i+2] = counted.FieldByName("stable").FieldByName("requests").Int()
	}
}

// operator is what its process remembers and what it was about to do. An operator that has
// something to write or to look at does that next: then it replaces whether to measure and
// when to look again, which only a crash asks for meanwhile. Whether the analysis has passed
// is not asked in an exploration, where spec.analysis is always set (see checkGrowth).
func (e *encoder) operator() {
	x := e.x
	quiet := x.quiet()
	e.flags(x.gone, quiet, quiet && x.measuring, x.tampered, x.fromZero, x.answered)
	e.word(x.aborted)
	e.word(x.rejected)
	e.number(int64(len(x.routes)))
	e.number(int64(x.actions)<<8 | int64(x.crashes))
	if x.due.After(x.now) && (quiet || x.crashes > 0) {
		e.number(int64(x.due.Sub(x.now)))
	}
	if len(x.pending) == 0 {
		return
	}
	e.number(int64(len(x.pending)))
	e.flags(x.dep == x.seen.dep, x.sameSplit(), x.sameRollout())
	e.word(x.seen.dep.template)
	for _, a := range x.pending {
		e.word(a.String())
		if t, ok := objectOf(a); ok {
			e.flags(slices.ContainsFunc(x.rss, func(rs *replicaSet) bool { return rs.at(t) }))
		}
	}
}

// objectOf is the ReplicaSet that an action names.
func objectOf(action kit.Action) (kit.Object, bool) {
	switch a := action.(type) {
	case state.AdoptCanary:
		return a.Object, true
	case kit.ScaleReplicaSet:
		return a.Object, true
	case kit.ReleaseCanary:
		return a.Object, true
	case kit.DeleteReplicaSet:
		return a.Object, true
	}
	return kit.Object{}, false
}
