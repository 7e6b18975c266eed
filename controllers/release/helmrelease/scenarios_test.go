// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// scenario is what happens to a canary, and how it has to end whatever crashes in between.
type scenario struct {
	name string
	run  func(*world)
	want string
}

const (
	before = "Deployment db: db x1; Deployment web: old x4"
	after  = "Deployment db: db x1; Deployment web: new x4"
)

func (w *world) transition(t v1alpha1.CanaryTransition) {
	w.cr.Spec.Transition = t
	w.cr.Generation++
	w.say("user: transition %s", t)
}

func (w *world) weigh(weight int32) {
	w.cr.Spec.Services = []v1alpha1.CanaryService{{Service: "web", Ports: []v1alpha1.CanaryPort{
		{Port: 80, Config: v1alpha1.CanaryPortConfig{Weight: &weight}}, {Port: 53, Protocol: v1alpha1.CanaryProtocolUDP},
	}}}
	w.cr.Generation++
	w.say("user: weight %d", weight)
}

func (w *world) delete() {
	w.cr.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.say("user: delete")
}

// runToUpgrade goes on until the upgrade of an adoption is on record.
func (w *world) runToUpgrade() {
	for range 200 {
		if r := w.cr.Status.Release; r != nil && r.AdoptedRevision == 5 {
			return
		}
		w.tick()
	}
}

// deleteUnheard deletes the CanaryRelease in the middle of an adoption, when Helm has
// deployed it, and from then on the router confirms nothing. Until the timeout is over
// the canary stays in its splits.
func (w *world) deleteUnheard() {
	w.run(30)
	w.onUpgrade = func() {
		w.deaf = true
		w.delete()
	}
	w.transition(v1alpha1.CanaryTransitionAdopted)
	w.run(100)
	if len(w.canaries()) == 0 || w.services["web"].split == nil || w.services["web"].split.deleting {
		w.Fatalf("it did not wait for the router\n%s", w.history())
	}
	w.say("the timeout is over")
	w.now = w.now.Add(routerTimeout)
	w.run(1)
	if w.rand == nil && !strings.Contains(w.history(), "event Deleting: The deletion takes longer than 10m0s: the Service web") {
		w.Fatalf("it does not say that it stops to wait for the router\n%s", w.history())
	}
}

// upgradeElsewhere is another user's helm upgrade to another template.
func (w *world) upgradeElsewhere() {
	const template = "other"
	w.helm = helmRelease{newest: w.helm.newest + 1, deployed: w.helm.newest + 1, status: "deployed"}
	w.deps["web"].template = template
	w.say("another user: helm upgrade to %s", template)
}

var scenarios = []scenario{
	{"a canary is adopted and its pods stay", func(w *world) {
		w.run(30)
		for _, weight := range []int32{10, 50, 0, 100, 20} {
			w.weigh(weight)
			w.run(20)
		}
		w.transition(v1alpha1.CanaryTransitionAdopted)
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"a canary that reads copies is adopted and its pods are replaced", func(w *world) {
		w.rolls["web"] = true
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionAdopted)
	}, "Deployment db: db x1; Deployment web: new with its own names x4; revision 5 deployed; Adopted Requested"},
	{"a canary is deprecated", func(w *world) {
		w.run(30)
		w.weigh(30)
		w.run(20)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"a canary with copies is deprecated before it serves", func(w *world) {
		w.rolls["web"] = true
		w.run(6)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"a CanaryRelease is deleted", func(w *world) {
		w.run(30)
		w.delete()
	}, before + "; revision 4 deployed; Deprecated Deleting"},
	{"a canary whose pods never get ready gets no traffic and is deprecated", func(w *world) {
		w.broken["new"] = true
		w.run(40)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"another user upgrades the release", func(w *world) {
		w.run(30)
		w.weigh(40)
		w.run(20)
		w.upgradeElsewhere()
	}, "Deployment db: db x1; Deployment web: other x4; revision 5 deployed; Deprecated ReleaseChanged"},
	{"another user upgrades the release in the middle of an adoption", func(w *world) {
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(3)
		if !w.helm.ours {
			w.upgradeElsewhere()
		}
	}, "Deployment db: db x1; Deployment web: other x4; revision 5 deployed; Deprecated ReleaseChanged"},
	{"another user changes the Deployment past Helm", func(w *world) {
		w.run(30)
		w.deps["web"].template = "edited"
		w.say("another user: kubectl edit")
	}, "Deployment db: db x1; Deployment web: edited x4; revision 4 deployed; Deprecated WorkloadChanged"},
	{"the release is uninstalled", func(w *world) {
		w.run(30)
		w.helm = helmRelease{}
		w.deps["web"].absent, w.services["web"].absent = true, true
		w.rss = slices.DeleteFunc(w.rss, func(rs *replicaSet) bool { return rs.owner == kit.OwnerDeployment && rs.dep == "web" })
		w.say("another user: helm uninstall")
	}, "Deployment db: db x1; revision 0 ; Deprecated ReleaseChanged"},
	{"the config is changed and the new canary is adopted", func(w *world) {
		w.run(30)
		w.weigh(30)
		w.run(20)
		w.digest, w.proposed["web"] = "d2", "newer"
		w.say("user: other config")
		w.run(40)
		w.transition(v1alpha1.CanaryTransitionAdopted)
	}, "Deployment db: db x1; Deployment web: newer x4; canary's pods; revision 5 deployed; Adopted Requested"},
	{"an adoption is taken back in time", func(w *world) {
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(2)
		w.transition("")
		w.run(20)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"an upgrade fails at first", func(w *world) {
		w.run(30)
		w.failUpgrade = "after"
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(40)
		w.failUpgrade = ""
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"an upgrade fails, and the operator is restarted again and again", func(w *world) {
		w.run(30)
		w.failUpgrade = "before"
		w.transition(v1alpha1.CanaryTransitionAdopted)
		for range 15 {
			w.run(6)
			w.failure, w.failedAt = "", time.Time{}
		}
		w.failUpgrade = ""
		w.run(60)
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"an upgrade fails, the canary is deprecated, and Helm rolls back", func(w *world) {
		w.run(30)
		w.failUpgrade = "after"
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(100)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
		w.run(30)
		if !w.deps["web"].paused {
			w.Fatalf("the Deployment rolls what failed\n%s", w.history())
		}
		w.helm = helmRelease{newest: 6, deployed: 6, status: "deployed"}
		w.deps["web"].template = "old"
		w.say("another user: helm rollback")
	}, before + "; revision 6 deployed; Deprecated Requested"},
	{"another user upgrades the release again after the adoption's upgrade", func(w *world) {
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.runToUpgrade()
		w.upgradeElsewhere()
	}, "Deployment db: db x1; Deployment web: other x4; revision 6 deployed; Adopted Requested"},
	{"a CanaryRelease is deleted after the upgrade and the router confirms nothing", func(w *world) {
		w.deleteUnheard()
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"a CanaryRelease with copies is deleted after the upgrade and the router confirms nothing", func(w *world) {
		w.rolls["web"] = true
		w.deleteUnheard()
	}, "Deployment db: db x1; Deployment web: new with its own names x4; revision 5 deployed; Adopted Requested"},
	{"a CanaryRelease is deleted after the upgrade, the router confirms nothing, and another user upgrades again", func(w *world) {
		w.deleteUnheard()
		w.upgradeElsewhere()
	}, "Deployment db: db x1; Deployment web: other x4; revision 6 deployed; Adopted Requested"},
	{"the Deployment is scaled in the middle of an adoption", func(w *world) {
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(2)
		w.deps["web"].replicas = 6
		w.run(5)
		w.deps["web"].replicas = 3
	}, "Deployment db: db x1; Deployment web: new x3; canary's pods; revision 5 deployed; Adopted Requested"},
	{"the Deployment once had the pods of the canary", func(w *world) {
		w.rss = append(w.rss, &replicaSet{name: "web-0", template: "new", revision: "web-0", dep: "web", uid: w.next(), owner: kit.OwnerDeployment})
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionAdopted)
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"two Services select the pods, one of them without weight", func(w *world) {
		w.services["admin"] = &service{name: "admin", dep: "web", ports: []Port{{9000, "TCP"}}}
		w.weigh(50)
		w.run(30)
		if got := text(w.services["admin"].split.served); got != "0 %" {
			w.Fatalf("the Service that the spec does not name sends %s to the canary", got)
		}
		w.transition(v1alpha1.CanaryTransitionAdopted)
	}, after + "; canary's pods; revision 5 deployed; Adopted Requested"},
	{"a canary with copies is deprecated without a ServiceAccount", func(w *world) {
		w.rolls["web"] = true
		w.run(30)
		w.locked = true
		w.transition(v1alpha1.CanaryTransitionDeprecated)
		w.run(40)
		w.wantStalled("Serin can't remove objects that only the canary read: the ConfigMap settings-web", lacking)
		s := w.services["web"]
		if w.rand == nil && (len(w.canaries()) > 0 || s.split != nil || s.stable+s.canary != "" || w.cr.Status.Decision.EndedAt != nil) {
			w.Fatalf("what needs no ServiceAccount is left, or it has ended\n%s", w.history())
		}
		w.locked = false
	}, before + "; revision 4 deployed; Deprecated Requested"},
	{"a Deployment that is paused is restored when Helm's records can be read again", func(w *world) {
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
		w.deps["web"].template = "edited"
		w.locked = true
		w.run(40)
		w.wantStalled("The Deployment web stays paused", lacking)
		w.locked = false
	}, "Deployment db: db x1; Deployment web: edited x4; revision 4 deployed; Deprecated Requested"},
	{"a CanaryRelease with copies is deleted without a ServiceAccount", func(w *world) {
		w.rolls["web"] = true
		w.run(30)
		w.locked = true
		w.delete()
		w.run(40)
		if len(w.cr.Finalizers) == 0 {
			w.Fatalf("it left copies at once\n%s", w.history())
		}
		w.now = w.now.Add(routerTimeout)
		w.run(10)
		if w.rand == nil && (w.cr.Status.Decision.EndedAt == nil || !strings.Contains(w.history(), "settings-web can't be removed and may be left; delete it. "+lacking)) {
			w.Fatalf("it waits for ever, or says nothing\n%s", w.history())
		}
		delete(w.copies, "settings-web") // by a user who read the message
	}, before + "; revision 4 deployed; Deprecated Deleting"},
	{"no canary can be made any more", func(w *world) {
		w.run(30)
		w.refused = []string{"StatefulSet db would change"}
		w.run(30)
		if len(w.canaries()) > 0 || w.services["web"].split != nil {
			w.Fatalf("the canary is still there\n%s", w.history())
		}
		w.transition(v1alpha1.CanaryTransitionDeprecated)
	}, before + "; revision 4 deployed; Deprecated Requested"},
}

// wantStalled wants Ready to say what the user has to do.
func (w *world) wantStalled(says ...string) {
	w.Helper()
	if w.rand != nil {
		return // it may still be under way
	}
	ready := meta.FindStatusCondition(w.cr.Status.Conditions, v1alpha1.ConditionReady)
	for _, text := range says {
		if !strings.Contains(ready.Message, text) {
			w.Fatalf("%q is not in %q\n%s", text, ready.Message, w.history())
		}
	}
	if !meta.IsStatusConditionTrue(w.cr.Status.Conditions, v1alpha1.ConditionStalled) || meta.IsStatusConditionTrue(w.cr.Status.Conditions, v1alpha1.ConditionProgressing) {
		w.Fatalf("it is not stalled: %+v\n%s", w.cr.Status.Conditions, w.history())
	}
}

func (w *world) canaries() []*replicaSet {
	return slices.DeleteFunc(slices.Clone(w.rss), func(rs *replicaSet) bool { return rs.owner != kit.OwnerSerin })
}

// dump is how it ended, and fails where anything is left of the CanaryRelease.
func (w *world) dump() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.deps)) {
		d := w.deps[name]
		if d.absent {
			continue
		}
		if d.paused || d.held {
			w.Fatalf("Deployment %s is still paused\n%s", name, w.history())
		}
		canary := ""
		for _, rs := range w.rss {
			if rs.dep != name || rs.existing == 0 {
				continue
			}
			parts = append(parts, fmt.Sprintf("Deployment %s: %s x%d", name, rs.template, rs.available))
			if rs.marked {
				canary = "canary's pods"
			}
		}
		if canary != "" {
			parts = append(parts, canary)
		}
	}
	if left := w.canaries(); len(left) > 0 {
		w.Fatalf("%s is left\n%s", left[0].name, w.history())
	}
	for _, s := range w.services {
		if s.split != nil || s.stable != "" || s.canary != "" {
			w.Fatalf("objects of Service %s are left\n%s", s.name, w.history())
		}
	}
	if len(w.copies)+len(w.cr.Status.Copies)+len(w.cr.Finalizers) > 0 {
		w.Fatalf("copies %v or finalizers %v are left\n%s", w.copies, w.cr.Finalizers, w.history())
	}
	d := w.cr.Status.Decision
	if d == nil || d.EndedAt == nil {
		w.Fatalf("it has not ended: %+v\n%s", w.cr.Status, w.history())
	}
	parts = append(parts, fmt.Sprintf("revision %d %s", w.helm.newest, w.helm.status), fmt.Sprintf("%s %s", d.Transition, d.Reason))
	return strings.Join(parts, "; ")
}

// end lets everything come to rest, and wants nothing to be written any more.
func (w *world) end(ticks int) {
	w.run(ticks)
	w.rand = nil
	w.run(10)
	was := w.writes
	w.run(10)
	if w.writes != was {
		w.Fatalf("%d writes although nothing is to be done\n%s", w.writes-was, w.history())
	}
}

func TestEveryScenarioEndsAsItShouldWhateverCrashes(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			s.run(w)
			w.end(100)
			if got := w.dump(); got != s.want {
				t.Fatalf("it ends as\n%s\nand not as\n%s\n%s", got, s.want, w.history())
			}
			for at := 1; at <= w.acted; at++ {
				again := newWorld(t)
				again.crashAt = at
				s.run(again)
				again.end(100)
				if got := again.dump(); got != s.want {
					t.Fatalf("with a crash before action %d it ends as\n%s\nand not as\n%s\n%s", at, got, s.want, again.history())
				}
			}
		})
	}
}

func TestScenariosEndWellInAnyOrderOfMoves(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				w := newWorld(t)
				t.Logf("seed %d", seed)
				w.rand = rand.New(rand.NewPCG(uint64(seed), 7))
				w.routerLag = w.rand.IntN(4)
				w.crashAt = w.rand.IntN(40)
				s.run(w)
				w.end(600)
				w.dump() // what it ends as depends on who came first
			}
		})
	}
}
