// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
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
)

// world is a cluster small enough to run a whole release in microseconds: a
// Deployment controller that behaves as the real one does, a ReplicaSet
// controller, a router that confirms late, traffic, and the users. The planner
// is run against it as the shell would. Every tick is one second.
type world struct {
	t   *testing.T
	now time.Time
	ro  *v1alpha1.Rollout
	dep deployment
	rss []*replicaSet
	// services maps a role to the revision that its Service selects.
	services map[string]string
	split    *split
	rv       int

	guard      bool            // an admission policy pauses a changed template in the same write
	podDelay   int             // ticks until a new pod is available
	routerLag  int             // ticks until a router has done what was asked
	broken     map[string]bool // templates whose pods never get ready
	failures   map[string]int64
	rps        int64
	freezes    []v1alpha1.Freeze
	answers    map[string]Answer
	asked      map[string]bool // questions and notifications that are open
	fresh      []string
	pair       Pair   // what is behind two Services that people keep
	quota      string // why no pod of a broken template can be created
	windows    []analysis.Window
	windowFrom time.Time

	dirty bool      // something changed that the operator watches
	due   time.Time // when the operator asked to look again; zero: never

	crashAt  int // the action before which the operator crashes; 0: never
	acted    int
	log      []string
	lastSaid string
	gone     bool
	passed   bool    // the analysis has passed at the present weight
	tampered bool    // somebody took the split away
	fromZero bool    // scaled to zero, and no pod of the Deployment is up again
	aborted  string  // template that was rolled back and must get no traffic
	routes   []Route // every step that was ever declared
	answered bool    // whether some pod answered in the state before

	written    int       // statuses
	reportedAt time.Time // of the last one

	served map[string]types.UID // template → the ReplicaSet whose pods served it
}

type deployment struct {
	template             string
	replicas             int32
	paused, held, absent bool
	managedBy            string
}

type replicaSet struct {
	name, template, revision               string
	owner                                  Owner
	uid                                    types.UID
	version                                int
	replicas, existing, available, desired int32
	age                                    int
}

type split struct {
	requested          Route
	observed           int32
	generation, served int
	lag                int
	deleting           bool
	inPath             bool // the router has taken the traffic over once
	version            int
}

var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	steps := []v1alpha1.Step{{Weight: 10, Hold: "30s"}, {Weight: 50, Hold: "30s"}}
	return &world{
		t: t, now: epoch, services: map[string]string{}, podDelay: 2, routerLag: 1, rps: 200,
		broken: map[string]bool{}, failures: map[string]int64{}, served: map[string]types.UID{}, answers: map[string]Answer{},
		dep: deployment{template: "v1", replicas: 4},
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

// setTemplate is what kubectl apply does.
func (w *world) setTemplate(template string) {
	if w.dep.template == template {
		return
	}
	w.dep.template = template
	if w.guard && w.dep.managedBy != "" {
		w.dep.paused = true
	}
	w.say("user: template %s", template)
}

func (w *world) say(format string, args ...any) {
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

func (w *world) tick() {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	w.deploymentController()
	w.replicaSetController()
	w.router()
	w.traffic()
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

// deploymentController does what sync and rolloutRolling of the real one do with
// paused Deployments, scaling and adoption.
func (w *world) deploymentController() {
	if w.dep.absent {
		return
	}
	for _, rs := range w.rss {
		if rs.owner == OwnerNone {
			rs.owner = OwnerDeployment
			w.touch(rs)
			w.say("deployment controller: adopts %s", rs.name)
		}
	}
	current := w.newest()
	if current == nil && !w.dep.paused {
		current = w.addReplicaSet(w.dep.template, "k"+w.dep.template, OwnerDeployment, 0)
	}
	var old, active []*replicaSet
	for _, rs := range w.rss {
		if rs.owner != OwnerDeployment {
			continue
		}
		if rs != current {
			old = append(old, rs)
		}
		if rs.replicas > 0 {
			active = append(active, rs)
		}
	}
	switch {
	case len(active) == 0 && current != nil:
		w.setReplicas(current, w.dep.replicas)
	case len(active) == 1 && (active[0] == current || w.dep.paused):
		w.setReplicas(active[0], w.dep.replicas)
	case current != nil && current.replicas == w.dep.replicas && current.desired == w.dep.replicas && current.available == w.dep.replicas:
		for _, rs := range old {
			w.setReplicas(rs, 0)
		}
	case w.dep.paused && len(active) > 1:
		w.t.Fatalf("the Deployment controller scales %d versions in proportion\n%s", len(active), w.tail())
	case current != nil:
		w.setReplicas(current, w.dep.replicas)
	}
}

// newest is the oldest ReplicaSet of the present template, as FindNewReplicaSet
// of the real controller has it.
func (w *world) newest() *replicaSet {
	for _, rs := range w.rss {
		if rs.owner == OwnerDeployment && rs.template == w.dep.template {
			return rs
		}
	}
	return nil
}

func (w *world) setReplicas(rs *replicaSet, n int32) {
	if rs.replicas == n && rs.desired == w.dep.replicas {
		return
	}
	rs.replicas, rs.desired = n, w.dep.replicas
	w.touch(rs)
}

func (w *world) addReplicaSet(template, revision string, owner Owner, replicas int32) *replicaSet {
	w.rv++
	rs := &replicaSet{
		name: "website-" + revision, template: template, revision: revision, owner: owner,
		uid: types.UID(fmt.Sprint("uid-", w.rv)), replicas: replicas, desired: w.dep.replicas,
	}
	w.touch(rs)
	w.rss = append(w.rss, rs)
	return rs
}

func (w *world) touch(rs *replicaSet) { w.rv++; rs.version = w.rv; w.dirty = true }

func (w *world) replicaSetController() {
	for _, rs := range w.rss {
		before := *rs
		if rs.existing != rs.replicas {
			rs.existing, rs.age = rs.replicas, 0
			rs.available = min(rs.available, rs.existing)
		} else {
			rs.age++
		}
		if rs.age >= w.podDelay && !w.broken[rs.template] {
			rs.available = rs.existing
		}
		if rs.existing > 0 {
			if uid, found := w.served[rs.template]; found && uid != rs.uid {
				w.t.Fatalf("a second roll of %s: its pods are made anew by %s\n%s", rs.template, rs.name, w.tail())
			}
			w.served[rs.template] = rs.uid
		}
		if before.existing != rs.existing || before.available != rs.available {
			w.touch(rs)
		}
	}
}

func (w *world) router() {
	s := w.split
	if s == nil {
		return
	}
	if s.lag < w.routerLag {
		s.lag++
		return
	}
	if s.deleting {
		w.split, w.dirty = nil, true
		w.say("router: traffic is back on the root Service")
		return
	}
	if s.requested.Weight < 0 {
		s.served, s.observed, s.version, w.dirty = s.generation, -1, w.rv, true
		return
	}
	if s.served != s.generation || s.observed != s.requested.Weight {
		s.served, s.observed = s.generation, s.requested.Weight
		w.rv++
		s.version, w.dirty, s.inPath = w.rv, true, true
		w.say("router: weight %d in effect", s.observed)
	}
}

// traffic makes a window every five seconds in which the weight was constant.
func (w *world) traffic() {
	s, since := w.split, w.since()
	if s == nil || since.IsZero() || s.observed != s.requested.Weight {
		w.windowFrom = time.Time{}
		return
	}
	if w.windowFrom.Before(since) {
		w.windowFrom = since
	}
	if w.now.Sub(w.windowFrom) < 5*time.Second || w.rps == 0 {
		return
	}
	n := w.rps * 5
	arm := func(role string, share int64) analysis.Arm {
		requests := n * share / 100
		return analysis.Arm{Requests: requests, Failures: requests * w.failures[w.templateOf(role)] / 100}
	}
	w.windows = append(w.windows, analysis.Window{
		Start: w.windowFrom, End: w.now, Weight: s.observed,
		Canary: arm(v1alpha1.RoleCanary, int64(s.observed)), Stable: arm(v1alpha1.RoleStable, int64(100-s.observed)),
	})
	w.windowFrom, w.dirty = w.now, true
}

func (w *world) since() time.Time {
	if wt := w.ro.Status.Weight; wt != nil && wt.Since != nil {
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
	if rs := w.byRevision(w.services[role]); rs != nil {
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
func (w *world) observe() Observation {
	o := Observation{
		Now: w.now, Rollout: w.ro.DeepCopy(), RouterOffered: true, RouterName: w.routerName(), ReportedAt: w.reportedAt,
		Pair: w.pair, Freezes: w.freezes, Answers: w.answers,
		GuardInForce: w.guard, Service: Service{Presence: Present}, Windows: w.windows,
		StableService: w.backend(v1alpha1.RoleStable), CanaryService: w.backend(v1alpha1.RoleCanary),
		Split: Split{Presence: Absent, Requested: Route{Weight: -1}, Observed: -1},
	}
	if o.Workload.Presence = Absent; !w.dep.absent {
		o.Workload = w.observeDeployment()
	}
	for _, rs := range w.rss {
		o.ReplicaSets = append(o.ReplicaSets, ReplicaSet{
			Name: rs.name, UID: rs.uid, ResourceVersion: strconv.Itoa(rs.version), Owner: rs.owner,
			Revision: rs.revision, Current: !w.dep.absent && rs.template == w.dep.template,
			Replicas: rs.replicas, Existing: rs.existing, Available: rs.available, Desired: rs.desired,
			Failure: w.failure(rs), Marked: true,
		})
	}
	if s := w.split; s != nil {
		o.Split = Split{
			Presence: Present, UID: "split", ResourceVersion: strconv.Itoa(s.version), Ours: true, Deleting: s.deleting,
			Requested: s.requested, Observed: s.observed, InEffect: s.served == s.generation,
		}
	}
	return o
}

func (w *world) failure(rs *replicaSet) string {
	if w.broken[rs.template] {
		return w.quota
	}
	return ""
}

func (w *world) observeDeployment() Workload {
	d := w.dep
	var total, available int32
	for _, rs := range w.rss {
		if rs.owner == OwnerDeployment {
			total, available = total+rs.existing, available+rs.available
		}
	}
	current := w.newest()
	return Workload{
		Presence: Present, UID: "dep", Replicas: d.replicas, Paused: d.paused, ManagedBy: d.managedBy, HeldBySerin: d.held,
		Settled:   current != nil && current.existing == d.replicas && total == d.replicas && available == d.replicas,
		Available: available, Revision: "s" + d.template,
	}
}

func (w *world) backend(role string) Backend {
	revision, found := w.services[role]
	if !found {
		return Backend{Presence: Absent}
	}
	return Backend{Presence: Present, UID: types.UID(role), ResourceVersion: "1", Ours: true, Revision: revision, UpToDate: true}
}

// reconcile is one pass of the shell. It returns whether anything was written.
func (w *world) reconcile() bool {
	w.t.Helper()
	if w.gone {
		return false
	}
	d := Decide(w.observe())
	if w.due = (time.Time{}); d.After > 0 {
		w.due = w.now.Add(d.After)
	}
	for _, e := range d.Events {
		w.say("event: %s", e.Message)
	}
	w.asks(d)
	changed := !apiequality.Semantic.DeepEqual(w.ro.Status, d.Status)
	if changed {
		w.written++
		w.reportedAt = w.now
	}
	w.ro.Status = *d.Status.DeepCopy()
	if a := w.ro.Status.Analysis; a != nil && a.Verdict == "Pass" {
		w.passed = true
	}
	if m := readyMessage(w.ro); m != w.lastSaid {
		w.lastSaid = m
		w.say("status: %s", m)
	}
	for _, a := range d.Actions {
		w.acted++
		if w.acted == w.crashAt {
			w.say("operator: crashes")
			w.windows = nil // what was measured and not judged is lost
			return true
		}
		w.say("  - %s", a)
		w.apply(a)
		changed = true
	}
	return changed
}

func readyMessage(ro *v1alpha1.Rollout) string {
	for _, c := range ro.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			// Evidence changes with every window; the log is about the rest.
			m, _, _ := strings.Cut(c.Message, "at least.")
			m, _, _ = strings.Cut(m, " Canary fails")
			return fmt.Sprintf("%s (%s)", m, c.Reason)
		}
	}
	return ""
}

func (w *world) apply(action Action) {
	switch a := action.(type) {
	case AddFinalizer:
		w.ro.Finalizers = []string{v1alpha1.Finalizer}
	case RemoveFinalizer:
		w.ro.Finalizers, w.gone = nil, true
	case SetHold:
		w.dep.paused, w.dep.held, w.dep.managedBy = a.Paused, true, w.ro.Name
	case HandBack:
		w.dep.paused, w.dep.held, w.dep.managedBy = a.Paused, a.Paused, ""
	case CreateCanary:
		w.addReplicaSet(w.dep.template, a.Revision, OwnerRollout, a.Replicas)
	case ClaimCanary:
		w.exact(a.Target).owner = OwnerRollout
	case ScaleReplicaSet:
		rs := w.exact(a.Target)
		rs.replicas, rs.desired = a.Replicas, a.Desired
		w.touch(rs)
	case ReleaseCanary:
		w.exact(a.Target).owner = OwnerNone
	case DeleteReplicaSet:
		rs := w.exact(a.Target)
		delete(w.served, rs.template) // released again, it is another release
		w.rss = slices.DeleteFunc(w.rss, func(x *replicaSet) bool { return x == rs })
	case ApplyBackend:
		w.services[a.Role] = a.Revision
	case DeleteBackend:
		delete(w.services, a.Role)
	case ApplySplit:
		w.checkGrowth(a.Route)
		if w.split == nil {
			w.split = &split{observed: -1}
		}
		w.rv++
		w.passed = w.passed && w.split.requested.sameRequests(a.Route)
		w.split.requested, w.split.lag, w.split.version = a.Route, 0, w.rv
		w.split.generation++
	case DeleteSplit:
		w.split.deleting, w.split.lag = true, 0
	default:
		w.t.Fatalf("unknown action %T", action)
	}
}

// exact finds the ReplicaSet that the action names, and fails like the API does
// when it is another version of it.
func (w *world) exact(target Target) *replicaSet {
	for _, rs := range w.rss {
		if rs.uid == target.UID && strconv.Itoa(rs.version) == target.ResourceVersion {
			w.touch(rs)
			return rs
		}
	}
	w.t.Fatalf("no ReplicaSet %+v\n%s", target, w.tail())
	return nil
}
