// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func TestACopyThatMayNotBeDeletedGoesLastAndIsTold(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.transition(v1alpha1.CanaryTransitionDeprecated)
	w.run(30)
	o := w.observe()
	o.CanaryRelease.Status.Decision.EndedAt = nil
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c := Copy{Kind: "Secret", Object: kit.Object{Name: name, UID: "u", ResourceVersion: "1"}, Presence: kit.Present, Ours: true}
		if name != "e" {
			c.Denied = "ServiceAccount x may not delete secrets: grant it"
		}
		o.Copies = append(o.Copies, c)
	}
	d := Decide(o)
	want := []string{"delete the Secret e", "delete the Secret a", "delete the Secret b", "delete the Secret c", "delete the Secret d"}
	if got := names(d.Actions); !slices.Equal(got, want) {
		t.Errorf("it does %v", got)
	}
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	for _, part := range []string{"the Secret a, the Secret b, the Secret c, 1 more", "ServiceAccount x may not delete secrets: grant it."} {
		if !strings.Contains(ready.Message, part) {
			t.Errorf("%q is not in %q", part, ready.Message)
		}
	}
	if strings.Count(ready.Message, "grant it") != 1 || meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("while one is being deleted it says %+v", d.Status.Conditions)
	}
	o.Copies = o.Copies[:4]
	if d = Decide(o); !meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("when only a user can act it says %+v", d.Status.Conditions)
	}
}

func TestARecordThatCanNotBeReadForAMomentLeavesNoDeploymentPaused(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.delete()
	w.deps["web"].template = "edited"
	w.locked = true
	w.run(30)
	if w.cr.Status.Decision.EndedAt != nil {
		t.Fatalf("it ended\n%s", w.history())
	}
	w.locked = false
	w.end(40)
	w.dump()
}

func TestARefusalTellsWhatIsOutOfReachToo(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	o := w.observe()
	o.Proposal.Refused = []string{"StatefulSet db would change"}
	o.Workloads[0].ReplicaSets = o.Workloads[0].ReplicaSets[:1]
	o.Services[0].Split, o.Services[0].Stable, o.Services[0].Canary = Split{Split: kit.Split{Presence: kit.Absent}}, kit.Backend{Presence: kit.Absent}, kit.Backend{Presence: kit.Absent}
	o.Copies = []Copy{{Kind: "Secret", Object: kit.Object{Name: "a"}, Denied: lacking}}
	ready := meta.FindStatusCondition(Decide(o).Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonRefused || !strings.Contains(ready.Message, "StatefulSet db") || !strings.Contains(ready.Message, lacking) {
		t.Errorf("%+v", ready)
	}
}

// The rights of the ServiceAccount, the copies and Helm's records go with a namespace in any order.
func TestADeletionDoesNotWaitForWhatGoesWithTheNamespace(t *testing.T) {
	for name, reach := range map[string]func(*world){
		"while it is served": func(*world) {},
		"while Helm upgrades": func(w *world) {
			w.failUpgrade = "before"
			w.transition(v1alpha1.CanaryTransitionAdopted)
			w.run(30)
			if r := w.cr.Status.Release; r == nil || r.UpgradeTries == 0 {
				w.Fatalf("Helm was not called\n%s", w.history())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.rolls["web"] = true
			w.run(30)
			reach(w)
			w.delete()
			w.locked = true
			w.run(40)
			if len(w.cr.Finalizers) == 0 {
				t.Fatalf("it went although the namespace stays\n%s", w.history())
			}
			w.doomed = true
			w.run(10)
			if len(w.cr.Finalizers) > 0 || strings.Contains(w.history(), "may be left") {
				t.Errorf("it waits\n%s", w.history())
			}
		})
	}
}
