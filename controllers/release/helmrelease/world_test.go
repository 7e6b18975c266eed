// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// world is a cluster with one Helm release and one CanaryRelease. Actors change it one
// move at a time; the operator sees it only through an Observation.
type world struct {
	*testing.T
	now  time.Time
	rand *rand.Rand // nil: the actors come in turn
	cr   *v1alpha1.CanaryRelease
	helm helmRelease
	// proposed are the templates that the Deployments get by the config.
	proposed map[string]string
	rolls    map[string]bool
	deps     map[string]*deployment
	rss      []*replicaSet
	services map[string]*service
	copies   map[string]string // name to digest
	digest   string
	refused  []string

	failUpgrade string // how often the upgrade fails: "before", "after" it changed anything
	failure     string // what the operator remembers of it
	failedAt    time.Time
	triedAt     time.Time
	broken      map[string]bool
	routerLag   int
	deaf        bool // the router confirms nothing, and only gives Services back
	onUpgrade   func()
	locked      bool // the ServiceAccount has no rights any more
	doomed      bool // the namespace is being deleted
	uid         int
	acted       int
	crashAt     int // before the action of this number
	lossy       bool
	log         []string
	report      func(*v1alpha1.CanaryRelease) // called with each status
	writes      int
}

type helmRelease struct {
	newest, deployed int32
	status           string
	ours             bool
}

type deployment struct {
	template string
	replicas int32
	paused   bool
	held     bool
	absent   bool
}

type replicaSet struct {
	name, template, revision, dep string
	uid                           int
	owner                         kit.Owner
	marked, rolls, deleting       bool
	unpromoted                    bool // the Deployment, which controls it, has never had its template
	replicas, existing, available int32
	desired                       int32
}

type service struct {
	name, dep      string
	ports          []Port
	absent         bool
	split          *split
	stable, canary string // revision; "" when there is no such Service
}

type split struct {
	requested, served []PortWeight
	age               int
	deleting, leads   bool
}

func newWorld(t *testing.T) *world {
	w := &world{
		T: t, now: time.Unix(1e9, 0).UTC(), digest: "d1", routerLag: 1,
		helm: helmRelease{newest: 4, deployed: 4, status: "deployed"},
		cr: &v1alpha1.CanaryRelease{
			ObjectMeta: metav1.ObjectMeta{Name: "try", Namespace: "shop", UID: "cr", Generation: 1},
			Spec:       v1alpha1.CanaryReleaseSpec{Release: "shop", Version: 4, Config: "a: b"},
		},
		proposed: map[string]string{"web": "new"}, rolls: map[string]bool{},
		deps:     map[string]*deployment{"web": {template: "old", replicas: 4}, "db": {template: "db", replicas: 1}},
		services: map[string]*service{"web": {name: "web", dep: "web", ports: []Port{{80, "TCP"}, {53, "UDP"}}}},
		copies:   map[string]string{}, broken: map[string]bool{},
	}
	for _, name := range []string{"web", "db"} {
		d := w.deps[name]
		w.rss = append(w.rss, &replicaSet{
			name: name + "-1", template: d.template, revision: name + "-1", dep: name, uid: w.next(), owner: kit.OwnerDeployment,
			replicas: d.replicas, existing: d.replicas, available: d.replicas, desired: d.replicas,
		})
	}
	return w
}

// newFailedUpgrade is a world in which Helm's upgrade for an adoption has failed before it changed anything.
func newFailedUpgrade(t *testing.T) *world {
	w := newWorld(t)
	w.run(30)
	w.failUpgrade = "before"
	w.transition(v1alpha1.CanaryTransitionAdopted)
	w.run(30)
	return w
}

func (w *world) next() int { w.uid++; return w.uid }

func (w *world) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// lacking is what the shell says of a right that the ServiceAccount has not.
const lacking = "ServiceAccount serin-canary of namespace shop may not get configmaps: create it"

// observe is what the shell would hand over.
func (w *world) observe() Observation {
	o := Observation{
		Now: w.now, CanaryRelease: w.cr, Doomed: w.doomed, UpgradeFailure: w.failure, UpgradeFailedAt: w.failedAt,
		Release: Release{Presence: kit.Present, Newest: w.helm.newest, Deployed: w.helm.deployed, Status: w.helm.status, Ours: w.helm.ours},
	}
	if w.helm.newest == 0 {
		o.Release = Release{Presence: kit.Absent}
	}
	if w.locked {
		o.Release = Release{Problem: "Helm's records can't be read: " + lacking}
	}
	known := !w.locked && w.helm.newest == w.cr.Spec.Version && w.helm.deployed == w.helm.newest
	if known {
		o.Proposal = Proposal{Known: true, Digest: w.digest, Refused: w.refused}
	}
	for _, name := range slices.Sorted(maps.Keys(w.deps)) {
		if wl, ok := w.observeWorkload(name, known); ok {
			o.Workloads = append(o.Workloads, wl)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.services)) {
		o.Services = append(o.Services, w.observeService(w.services[name], known))
	}
	names := maps.Clone(w.copies)
	for dep, reads := range w.rolls {
		if reads && known {
			names["settings-"+dep] = w.copies["settings-"+dep]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := Copy{Kind: "ConfigMap", Object: kit.Object{Name: name}, Presence: kit.Absent, Wanted: known}
		if digest, found := w.copies[name]; found {
			c.Presence, c.Ours, c.Current, c.UID, c.ResourceVersion = kit.Present, true, digest == w.digest, "c", "1"
		}
		if w.locked {
			c = Copy{Kind: c.Kind, Object: c.Object, Denied: lacking}
		}
		o.Copies = append(o.Copies, c)
	}
	return o
}

func (w *world) observeWorkload(name string, known bool) (Workload, bool) {
	d := w.deps[name]
	candidate := w.proposed[name] != "" && known
	out := Workload{
		Name: name, Presence: kit.Present, Replicas: d.replicas, Paused: d.paused, Held: d.held,
		Candidate: candidate, Rolls: w.rolls[name], Settled: w.settled(name),
	}
	if d.absent {
		out = Workload{Name: name, Presence: kit.Absent, Candidate: candidate}
	}
	if candidate {
		out.Revision = name + "-" + w.digest
	}
	marked := false
	for _, rs := range w.rss {
		if rs.dep != name {
			continue
		}
		marked = marked || rs.marked
		out.ReplicaSets = append(out.ReplicaSets, kit.ReplicaSet{
			Object: kit.Object{Name: rs.name, UID: types.UID(strconv.Itoa(rs.uid)), ResourceVersion: "1"}, Owner: rs.owner, Marked: rs.marked, Rolls: rs.rolls,
			Revision: rs.revision, Current: !d.absent && rs.template == d.template, Replicas: rs.replicas, Existing: rs.existing,
			Available: rs.available, Desired: rs.desired, Deleting: rs.deleting, Unpromoted: rs.unpromoted,
		})
	}
	onRecord := slices.ContainsFunc(w.cr.Status.Workloads, func(s v1alpha1.CanaryWorkload) bool { return s.Name == name })
	return out, candidate || marked || onRecord || d.paused && d.held
}

func (w *world) observeService(s *service, known bool) Service {
	out := Service{Name: s.name, Presence: kit.Present, Workload: s.dep, Ports: s.ports, Wanted: w.proposed[s.dep] != "" && known && !s.absent}
	if s.absent {
		out.Presence = kit.Absent
	}
	backend := func(revision string) kit.Backend {
		if revision == "" {
			return kit.Backend{Presence: kit.Absent}
		}
		b := kit.Backend{Presence: kit.Present, Object: kit.Object{UID: "b", ResourceVersion: "1"}, Ours: true, Revision: revision, UpToDate: true}
		if rs := w.byRevision(revision); rs != nil {
			b.Ready = rs.available
		}
		return b
	}
	out.Stable, out.Canary = backend(s.stable), backend(s.canary)
	out.Split = Split{Split: kit.Split{Presence: kit.Absent}}
	if sp := s.split; sp != nil {
		out.Split = Split{Requested: sp.requested, Proxies: 2, Split: kit.Split{
			Presence: kit.Present, Object: kit.Object{Name: s.name, UID: "s", ResourceVersion: "1"}, Ours: true, Deleting: sp.deleting,
			Programmed: sp.leads && !w.deaf && slices.Equal(sp.requested, sp.served),
		}}
	}
	return out
}

func (w *world) byRevision(revision string) *replicaSet {
	for _, rs := range w.rss {
		if rs.revision == revision {
			return rs
		}
	}
	return nil
}

func (w *world) settled(name string) bool {
	d := w.deps[name]
	for _, rs := range w.rss {
		if rs.dep == name && rs.owner == kit.OwnerDeployment {
			current := rs.template == d.template
			if current && (rs.available != d.replicas || rs.existing != d.replicas) || !current && rs.existing > 0 {
				return false
			}
		}
	}
	return slices.ContainsFunc(w.rss, func(rs *replicaSet) bool {
		return rs.dep == name && rs.owner == kit.OwnerDeployment && rs.template == d.template
	})
}

// operate is one reconcile.
func (w *world) operate() {
	d := Decide(w.observe())
	if !reflect.DeepEqual(w.cr.Status, d.Status) {
		w.cr.Status = d.Status
		w.writes++
		if w.report != nil {
			w.report(w.cr)
		}
	}
	for _, e := range d.Events {
		w.say("event %s: %s", e.Reason, e.Message)
	}
	for _, a := range d.Actions {
		if w.acted++; w.acted == w.crashAt {
			w.say("CRASH before: %s", a)
			w.failure = ""
			return
		}
		w.writes++
		w.say("%s", a)
		if !w.act(a) {
			return
		}
		w.check(a)
	}
}

// act carries an action out and reports whether it went well.
func (w *world) act(action kit.Action) bool {
	switch a := action.(type) {
	case kit.AddFinalizer:
		w.cr.Finalizers = []string{v1alpha1.FinalizerCanaryRelease}
	case kit.RemoveFinalizer:
		w.cr.Finalizers = nil
	case kit.ApplyBackend:
		if a.Role == v1alpha1.RoleStable {
			w.services[a.Service].stable = a.Revision
		} else {
			w.services[a.Service].canary = a.Revision
		}
	case kit.DeleteBackend:
		root, role := a.Service, a.Role
		if role == v1alpha1.RoleStable {
			w.services[root].stable = ""
		} else {
			w.services[root].canary = ""
		}
	case ApplySplit:
		s := w.services[a.Service]
		if s.split == nil {
			s.split = &split{}
		}
		s.split.requested, s.split.age = a.Weights, 0
	case kit.DeleteSplit:
		w.services[a.Service].split.deleting = true
	case KeepCopy:
		w.copies[a.Name] = w.digest
	case DropCopy:
		delete(w.copies, a.Name)
	case SetHold:
		w.deps[a.Workload].paused, w.deps[a.Workload].held = a.Paused, a.Paused
	case Upgrade:
		return w.upgrade()
	default:
		w.actOnReplicaSet(action)
	}
	return true
}

func (w *world) actOnReplicaSet(action kit.Action) {
	switch a := action.(type) {
	case CreateCanary:
		revision := a.Workload + "-" + w.digest
		if w.byRevision(revision) != nil {
			w.Fatalf("canary %s is made twice\n%s", revision, w.history())
		}
		w.rss = append(w.rss, &replicaSet{
			name: revision, template: w.proposed[a.Workload], revision: revision, dep: a.Workload, uid: w.next(), owner: kit.OwnerSerin,
			marked: true, rolls: w.rolls[a.Workload], replicas: a.Replicas, desired: w.deps[a.Workload].replicas,
		})
	case kit.ScaleReplicaSet:
		rs := w.target(a.Object)
		rs.replicas, rs.desired = a.Replicas, a.Desired
	case kit.DeleteReplicaSet:
		rs := w.target(a.Object)
		if rs.existing > 0 {
			w.Fatalf("%s is deleted with %d pods\n%s", rs.name, rs.existing, w.history())
		}
		rs.deleting = true
	case kit.ReleaseCanary:
		w.target(a.Object).owner = kit.OwnerNone
	default:
		w.Fatalf("no such action: %T", action)
	}
}

func (w *world) target(t kit.Object) *replicaSet {
	for _, rs := range w.rss {
		if strconv.Itoa(rs.uid) == string(t.UID) {
			return rs
		}
	}
	w.Fatalf("%s does not exist\n%s", t.Name, w.history())
	return nil
}

// upgrade is what Helm does, in three writes: the record, the objects, the record again.
func (w *world) upgrade() bool {
	if since := w.now.Sub(w.triedAt); since < retryUpgrade {
		w.Fatalf("Helm is called again after %s\n%s", since, w.history())
	}
	w.triedAt = w.now
	w.failedAt = w.now
	if !w.helm.ours {
		if w.helm.newest != w.cr.Spec.Version {
			w.failure = "another upgrade was made"
			return false
		}
		w.helm = helmRelease{newest: w.helm.newest + 1, deployed: w.helm.deployed, status: "pending-upgrade", ours: true}
	}
	if w.failUpgrade == "before" {
		w.helm.status, w.failure = "failed", "a hook failed"
		return false
	}
	for name, template := range w.proposed {
		w.deps[name].template = template
		if w.rolls[name] {
			w.deps[name].template = template + " with its own names"
		}
	}
	if w.failUpgrade == "after" {
		w.helm.status, w.failure = "failed", "a hook failed"
		return false
	}
	w.helm.deployed, w.helm.status, w.failure = w.helm.newest, "deployed", ""
	if w.onUpgrade != nil {
		w.onUpgrade()
	}
	return true
}

// tick lets every actor move once, in an order of its own in random worlds.
func (w *world) tick() {
	w.now = w.now.Add(time.Second)
	actors := []func(){w.operate, w.deploymentController, w.replicaSetController, w.router, w.operate}
	if w.rand != nil {
		w.rand.Shuffle(len(actors), func(i, j int) { actors[i], actors[j] = actors[j], actors[i] })
		actors = actors[:1+w.rand.IntN(len(actors))]
	}
	for _, move := range actors {
		move()
		w.check(nil)
	}
}

func (w *world) run(ticks int) {
	for range ticks {
		w.tick()
	}
}

func (w *world) history() string { return strings.Join(w.log, "\n") }
