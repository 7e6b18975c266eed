// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// world is a cluster small enough to run a whole release in microseconds: a
// Deployment controller that behaves as the real one does, a ReplicaSet
// controller, a router that confirms late, traffic, and the users. The planner
// is run against it as the shell would. Every tick is one second.
type world struct {
	t   testing.TB
	now time.Time
	ro  *v1alpha1.Rollout
	dep fakeDeployment
	rss []*replicaSet
	// services maps a role to the revision that its Service selects.
	services map[string]string
	split    *split
	preview  *fakePreview // nil for none
	stuck    bool         // its endpoints do not follow
	rv       int

	guard      bool            // an admission policy pauses a changed template in the same write
	podDelay   int             // ticks until a new pod is available
	routerLag  int             // ticks until a router has done what was asked
	broken     map[string]bool // templates whose pods never get ready
	failures   map[string]int64
	rps        int64
	refused    int64 // requests that the proxies refuse beside each hundred that they pass on
	freezes    []v1alpha1.Freeze
	answers    map[string]state.Answer
	asked      map[string]bool // questions and notifications that are open
	fresh      []string
	pair       state.Pair       // what is behind two Services that users keep
	cr         *delegatedCanary // that the Rollout names; nil for none
	content    string           // of the ConfigMap that the template reads; "" where none is part of a version
	contentAt  time.Time
	copies     []configrevision.Copy
	quota      string // why no pod of a broken template can be created
	problem    string // why the root Service can't be split
	unoffered  bool   // the operator does not offer the router that the spec names
	lost       bool   // another actor deleted the stable version
	windows    []analysis.Window
	windowFrom time.Time

	dirty bool      // something changed that the operator watches
	due   time.Time // when the operator asked to look again; zero: never

	crashAt  int    // the action before which the operator crashes; 0: never
	crashed  func() // called when it has; nil for nothing
	acted    int
	mute     bool // the log is not read
	watch    bool // check that Decide changes nothing that it observed, and decides the same again
	racing   bool // others move between the operator's look and its writes
	log      []string
	lastSaid string
	gone     bool
	passed   bool             // the analysis has passed at the present weight
	tampered bool             // another actor removed the split
	fromZero bool             // scaled to zero, and no pod of the Deployment is up again
	aborted  string           // template that was rolled back and must get no traffic
	rejected string           // template that must not come up again: aborted, whatever becomes of the status
	routes   []strategy.Route // every step that was ever declared
	answered bool             // whether some pod answered in the state before, or since the router took the traffic over

	report     func()    // called after each status
	recorded   *recorded // what is judged; nil for nothing
	written    int       // statuses
	reportedAt time.Time // of the last one
	// putOff is what the operator knows and has not written yet; nil for nothing.
	putOff *v1alpha1.RolloutStatus

	// lookout is what the operator remembers of its looks, and behind what its caches make
	// of what is there; nil when they follow.
	lookout state.Lookout
	// outageAt is when the operator last saw an outage, and unreported whether pods that are
	// not available ran as far as their nodes reported.
	outageAt   time.Time
	unreported bool
	behind     func(state.Observation) state.Observation

	served map[string]types.UID // template → the ReplicaSet whose pods served it
}

type fakeDeployment struct {
	template             string
	hash                 string // with a template it names a new ReplicaSet; of another UID it is another one
	replicas             int32
	paused, held, absent bool
	managedBy            string
}

type replicaSet struct {
	name, template, revision               string
	owner                                  kit.Owner
	uid                                    types.UID
	version                                int
	replicas, existing, available, desired int32
	age                                    int
	promotion                              string
	rejected                               string
	marked                                 bool // it was made a canary once
}

type split struct {
	requested          strategy.Route
	observed           int32
	generation, served int
	lag                int
	deleting           bool
	cutOver            bool // the router has taken the traffic over once
	withdrawn          bool // no router serves it any more
	inherited          bool // an earlier Rollout made it
	version            int
}

var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func newWorld(tb testing.TB) *world {
	tb.Helper()
	steps := []v1alpha1.Step{{Weight: 10, Hold: "30s"}, {Weight: 50, Hold: "30s"}}
	return &world{
		t: tb, now: epoch, services: map[string]string{}, podDelay: 2, routerLag: 1, rps: 200,
		broken: map[string]bool{}, failures: map[string]int64{}, served: map[string]types.UID{}, answers: map[string]state.Answer{},
		dep: fakeDeployment{template: "v1", hash: "s", replicas: 4},
		ro: &v1alpha1.Rollout{
			ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: "shop", UID: "ro", Generation: 1},
			Spec: v1alpha1.RolloutSpec{
				WorkloadRef: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "website"},
				Service:     "website", Strategy: v1alpha1.Strategy{Steps: steps},
			},
		},
	}
}

func (w *world) routerName() v1alpha1.RouterName {
	if w.ro.Spec.Router != "" {
		return w.ro.Spec.Router
	}
	return v1alpha1.RouterNginx
}

func (w *world) byReplicas() bool { return strategy.ByReplicas(&w.ro.Spec, w.routerName()) }

// setTemplate is what kubectl apply does.
func (w *world) setTemplate(template string) {
	if w.dep.template == template {
		return
	}
	w.dep.template, w.rejected = template, ""
	if w.guard && w.dep.managedBy != "" {
		w.dep.paused = true
	}
	w.say("user: template %s", template)
}

func (w *world) say(format string, args ...any) {
	if w.mute {
		return
	}
	w.log = append(w.log, fmt.Sprintf("%4ds  ", int(w.now.Sub(epoch).Seconds()))+fmt.Sprintf(format, args...))
}

// run lets the world go on for some seconds.
func (w *world) run(seconds int) {
	w.t.Helper()
	w.dirty = true
	for range seconds {
		w.tick()
	}
}

// until runs until the condition holds; it fails the test when it does not within
// an hour.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	w.dirty = true
	for range 3600 {
		if condition() {
			return
		}
		w.tick()
	}
	w.t.Fatalf("never: %s\n%s", what, w.tail())
}

func (w *world) tail() string {
	return strings.Join(w.log[max(0, len(w.log)-25):], "\n")
}

// passes is a second in which the operator does nothing.
func (w *world) passes() {
	w.now = w.now.Add(time.Second)
	w.deploymentController()
	w.replicaSetController()
	w.canaryController()
	w.router()
	w.traffic()
	if w.preview != nil && !w.stuck {
		w.preview.endpoints = w.preview.revision
	}
}

func (w *world) tick() {
	w.t.Helper()
	w.passes()
	// The operator looks only when something changed, or at the time it asked for:
	// one that forgets to ask never goes on.
	for range 12 {
		if !w.dirty && (w.due.IsZero() || w.now.Before(w.due)) {
			return
		}
		w.dirty = w.reconcile()
		w.check()
		w.deploymentController()
	}
}

func (w *world) since() time.Time {
	if wt := w.known().Weight; wt != nil && wt.Since != nil {
		return wt.Since.Time
	}
	return time.Time{}
}

func (w *world) templateOf(role string) string {
	if w.ro.Spec.Services != nil {
		if role == v1alpha1.RoleCanary {
			return w.pair.CanaryRevision
		}
		return w.pair.StableRevision
	}
	if w.cr != nil && role == v1alpha1.RoleCanary {
		return w.cr.content
	}
	revision := w.services[role]
	if st := w.ro.Status; w.split == nil && role == v1alpha1.RoleCanary && st.Canary != nil {
		revision = st.Canary.Revision // nothing but its pods says which it is
	} else if w.split == nil && st.Stable != nil {
		revision = st.Stable.Revision
	}
	if rs := w.byRevision(revision); rs != nil {
		return rs.template
	}
	return ""
}

func (w *world) byRevision(revision string) *replicaSet {
	for _, rs := range w.rss {
		if rs.revision == revision {
			return rs
		}
	}
	return nil
}

// observe is what the shell reads.
func (w *world) observe() state.Observation {
	o := state.Observation{
		Now: w.now, Rollout: w.ro, RouterOffered: !w.unoffered, RouterName: w.routerName(), ReportedAt: w.reportedAt,
		Pair: w.pair, Freezes: w.freezes, Answers: w.tried(),
		Jump: w.lookout.Jump, OutageAt: w.outageAt, CanaryExcused: w.unreported, GuardInForce: w.guard, Service: state.Service{Presence: kit.Present, Problem: w.problem}, Windows: w.windows,
		StableService: w.backend(v1alpha1.RoleStable), CanaryService: w.backend(v1alpha1.RoleCanary),
		Split: state.Split{Split: kit.Split{Presence: kit.Absent}, Requested: strategy.Route{Weight: -1}, Observed: -1},
	}
	if w.putOff != nil {
		ro := *w.ro
		ro.Status = *w.putOff
		o.Rollout, o.Stored = &ro, &w.ro.Status
	}
	if o.Workload.Presence = kit.Absent; !w.dep.absent {
		o.Workload = w.observeDeployment()
	}
	for _, rs := range w.rss {
		o.ReplicaSets = append(o.ReplicaSets, kit.ReplicaSet{
			Object: kit.Object{Name: rs.name, UID: rs.uid, ResourceVersion: strconv.Itoa(rs.version)}, Owner: rs.owner,
			Revision: rs.revision, Current: !w.dep.absent && rs.template == w.dep.template,
			Replicas: rs.replicas, Existing: rs.existing, Available: rs.available, Desired: rs.desired, Promotion: rs.promotion,
			Failure: w.failure(rs), Marked: true, Unpromoted: rs.marked && rs.promotion == "", Rejected: rs.rejected,
		})
	}
	o.Configuration = w.observeConfiguration()
	w.observePreview(&o)
	if s := w.split; s != nil {
		o.Split = state.Split{
			Split: kit.Split{
				Presence: kit.Present, Object: kit.Object{UID: "split", ResourceVersion: strconv.Itoa(s.version)}, Ours: true, Deleting: s.deleting,
				Programmed: s.served == s.generation && !s.withdrawn, Unserved: s.withdrawn,
			},
			Requested: s.requested, Observed: s.observed, Inherited: s.inherited,
		}
	}
	if w.isDelegated() {
		w.observeDelegated(&o)
	}
	return o
}

// tried is what became of what was asked: without an answer, only that it was.
func (w *world) tried() map[string]state.Answer {
	if len(w.asked) == 0 {
		return w.answers
	}
	out := maps.Clone(w.answers)
	for id := range w.asked {
		if _, found := out[id]; !found {
			out[id] = state.Answer{Tried: true}
		}
	}
	return out
}

// handedOver reports whether a ReplicaSet was handed over for the promotion that was decided.
func (w *world) handedOver() bool { return slices.ContainsFunc(w.rss, w.isPromoted) }

func (w *world) isPromoted(rs *replicaSet) bool {
	d := w.ro.Status.Decision
	return d != nil && rs.promotion == strconv.FormatInt(d.Time.UnixMicro(), 10)
}

func (w *world) failure(rs *replicaSet) string {
	if w.broken[rs.template] {
		return w.quota
	}
	return ""
}

func (w *world) observeDeployment() state.Workload {
	d := w.dep
	var total, available int32
	for _, rs := range w.rss {
		if rs.owner == kit.OwnerDeployment {
			total, available = total+rs.existing, available+rs.available
		}
	}
	current := w.newest()
	return state.Workload{
		Presence: kit.Present, UID: "dep", Replicas: d.replicas, Paused: d.paused, ManagedBy: d.managedBy, HeldBySerin: d.held,
		Settled:   current != nil && current.existing == d.replicas && total == d.replicas && available == d.replicas,
		Available: available, Revision: d.hash + d.template,
	}
}

func (w *world) backend(role string) kit.Backend {
	revision, found := w.services[role]
	if !found {
		return kit.Backend{Presence: kit.Absent}
	}
	return kit.Backend{Presence: kit.Present, Object: kit.Object{UID: types.UID(role), ResourceVersion: "1"}, Ours: true, Revision: revision, UpToDate: true}
}

// reconcile is one pass of the shell. It returns whether anything was written.
func (w *world) reconcile() bool {
	w.t.Helper()
	if w.gone {
		return false
	}
	d, changed := w.look()
	for _, a := range d.Actions {
		w.acted++
		if w.acted == w.crashAt {
			w.say("operator: crashes")
			w.windows = nil // what was measured and not judged is lost
			w.forget()
			if w.recorded != nil {
				w.recorded.restart()
			}
			if w.crashed != nil {
				w.crashed()
			}
			return true
		}
		w.say("  - %s", a)
		w.checkAction(a)
		if !w.apply(a) {
			w.t.Fatalf("%s: the object is another one by now\n%s", a, w.tail())
		}
		changed = true
	}
	return changed
}

// known is the status that the operator knows, which may not be written yet.
func (w *world) known() *v1alpha1.RolloutStatus {
	if w.putOff != nil {
		return w.putOff
	}
	return &w.ro.Status
}

// forget is what a restart of the operator does to its memory.
func (w *world) forget() {
	w.lookout, w.reportedAt, w.outageAt, w.putOff = state.Lookout{}, time.Time{}, time.Time{}, nil
}

// look is the first half of a pass, up to the write of the status. It returns
// whether that was written.
func (w *world) look() (d state.Decision, changed bool) {
	w.t.Helper()
	w.lookout = w.lookout.Look(w.now)
	o := w.observe()
	o.LeaveOut = w.recorded != nil && w.recorded.LeaveOut()
	if w.behind != nil {
		o = w.behind(o)
	}
	before := o.Rollout
	if w.watch {
		before = before.DeepCopy()
	}
	d = Decide(o)
	if w.watch && !reflect.DeepEqual(before, o.Rollout) {
		w.t.Fatalf("Decide changed what it observed\n%s", w.tail())
	}
	if w.watch && !reflect.DeepEqual(d, Decide(o)) {
		w.t.Fatalf("Decide decides something else on the same observation\n%s", w.tail())
	}
	if w.due = (time.Time{}); d.After > 0 {
		w.due = w.now.Add(d.After)
	}
	w.lookout = w.lookout.LookAgain(d.After)
	if d.Outage {
		w.outageAt = w.now
	}
	for _, e := range d.Events {
		w.say("event: %s", e.Message)
	}
	w.asks(d)
	if changed = !d.Later && !sameStatus(&w.ro.Status, &d.Status); changed {
		w.written++
		w.reportedAt = w.now
	}
	if w.recorded != nil {
		w.recorded.look(&w.ro.Status, &d)
	}
	if w.putOff = nil; d.Later {
		w.putOff = &d.Status
	} else {
		w.ro.Status = d.Status
	}
	if w.report != nil {
		w.report()
	}
	if a := w.ro.Status.Analysis; a != nil && a.Verdict == "Pass" {
		w.passed = true
	}
	if w.mute {
		return d, changed
	}
	if m := readyMessage(w.ro); m != w.lastSaid {
		w.lastSaid = m
		w.say("status: %s", m)
	}
	return d, changed
}

// sameStatus is the comparison of the shell, which is slow, after one that is fast
// and nearly always enough: most looks change nothing.
func sameStatus(a, b *v1alpha1.RolloutStatus) bool {
	return reflect.DeepEqual(a, b) || apiequality.Semantic.DeepEqual(a, b)
}

func readyMessage(ro *v1alpha1.Rollout) string {
	for _, c := range ro.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			// Evidence changes with every window; the log is about the rest.
			m, _, _ := strings.Cut(c.Message, "or later.")
			m, _, _ = strings.Cut(m, " Canary fails")
			return fmt.Sprintf("%s (%s)", m, c.Reason)
		}
	}
	return ""
}

// apply carries one action out, and reports whether the objects that it names are
// still the ones that were observed.
func (w *world) apply(action kit.Action) bool {
	w.t.Helper()
	switch a := action.(type) {
	case kit.AddFinalizer:
		w.ro.Finalizers = []string{v1alpha1.Finalizer}
	case kit.RemoveFinalizer:
		w.ro.Finalizers, w.gone = nil, true
	case state.SetPaused:
		w.dep.paused, w.dep.held, w.dep.managedBy = a.Paused, true, w.ro.Name
	case state.RestoreDeployment:
		w.dep.paused, w.dep.held, w.dep.managedBy = a.Paused, a.Paused, ""
	case state.PointPreview:
		return w.pointPreview(a)
	case state.CreateCanary:
		w.addReplicaSet(w.dep.template, a.Revision, kit.OwnerSerin, a.Replicas).marked = true
	case kit.ApplyBackend:
		w.services[a.Role] = a.Revision
	case kit.DeleteBackend:
		delete(w.services, a.Role)
	case state.ApplySplit:
		w.applySplit(a.Route)
	case kit.DeleteSplit:
		if w.split != nil {
			w.split.deleting, w.split.lag = true, 0
		}
	case state.SetDelegation, state.ClearDelegation:
		w.setDelegation(action)
	case state.KeepContent:
		w.copies = append(w.copies, configrevision.Copy{Kind: a.Kind, Name: a.Name + "-" + w.content})
	case state.DropContent:
		w.copies = slices.DeleteFunc(w.copies, func(c configrevision.Copy) bool { return c.Name == a.Name })
	case state.SetConfiguration:
		w.configure(a.Value)
	default:
		return w.applyToReplicaSet(action)
	}
	return true
}

func (w *world) applySplit(r strategy.Route) {
	if w.split == nil {
		w.split = &split{observed: -1}
	}
	w.rv++
	w.passed = w.passed && w.split.requested.SameRequests(r)
	w.split.requested, w.split.lag, w.split.version, w.split.inherited = r, 0, w.rv, false
	w.split.generation++
}

func (w *world) applyToReplicaSet(action kit.Action) bool {
	var rs *replicaSet
	switch a := action.(type) {
	case state.AdoptCanary:
		if rs = w.exact(a.Object); rs != nil {
			rs.owner, rs.marked, rs.promotion = kit.OwnerSerin, true, ""
		}
	case kit.ScaleReplicaSet:
		if rs = w.exact(a.Object); rs != nil {
			rs.replicas, rs.desired, rs.rejected = a.Replicas, a.Desired, a.Rejected
		}
	case kit.ReleaseCanary:
		if rs = w.exact(a.Object); rs != nil {
			rs.owner, rs.promotion = kit.OwnerNone, a.Promotion
		}
	case kit.DeleteReplicaSet:
		if rs = w.exact(a.Object); rs != nil {
			delete(w.served, rs.template) // released again, it is another release
			w.rss = slices.DeleteFunc(w.rss, func(x *replicaSet) bool { return x == rs })
		}
	default:
		w.t.Fatalf("unknown action %T", action)
	}
	return rs != nil
}

// exact finds the ReplicaSet that the action names, and nothing when that is
// another version of it by now: the API refuses the write then.
func (w *world) exact(target kit.Object) *replicaSet {
	for _, rs := range w.rss {
		if rs.at(target) {
			w.touch(rs)
			return rs
		}
	}
	return nil
}

func (rs *replicaSet) at(t kit.Object) bool {
	return rs.uid == t.UID && strconv.Itoa(rs.version) == t.ResourceVersion
}
