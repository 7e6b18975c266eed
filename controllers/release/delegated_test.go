// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

func init() {
	scenarios = append(scenarios, delegatedScenarios...)
}

var delegatedScenarios = []scenario{
	{"a CanaryRelease is promoted, and another one after it", func(w *world) {
		w.begins(50)
		w.until("promoted", w.promotedAs("a-v2"))
		w.run(60)
		w.tries("b", "v3")
		w.until("promoted", w.promotedAs("b-v3"))
	}},
	{"a bad CanaryRelease is rolled back, and a better one takes its place", func(w *world) {
		w.failures["v2"] = 5
		w.delegated()
		w.tries("a", "v2")
		w.until("rolled back", w.rolledBack)
		w.run(60)
		w.tries("b", "v3")
		w.until("promoted", w.promotedAs("b-v3"))
	}},
	{"a CanaryRelease is rolled back little by little", func(w *world) {
		w.ro.Spec.Strategy.RollBackOver = "30s"
		w.begins(50)
		w.control(v1alpha1.ControlAbort, "a-v2")
		w.until("rolled back", w.rolledBack)
	}},
	{"a user aborts the release of a CanaryRelease", func(w *world) {
		w.begins(10)
		w.control(v1alpha1.ControlAbort, "a-v2")
		w.until("rolled back", w.rolledBack)
		w.control(v1alpha1.ControlRetry, "a-v2")
		w.run(30)
	}},
	{"a CanaryRelease is deprecated meanwhile", func(w *world) {
		w.begins(50)
		w.asUser(v1alpha1.CanaryTransitionDeprecated)
		w.until("rolled back", w.rolledBack)
	}},
	{"a CanaryRelease is deleted in the middle", func(w *world) {
		w.begins(50)
		w.cr.deleting = true
		w.say("user: deletes the CanaryRelease")
		w.until("gone", func() bool { return w.cr == nil })
		w.untilReason(v1alpha1.ReasonStable)
	}},
	{"a user adopts a CanaryRelease in the middle", func(w *world) {
		w.begins(10)
		w.asUser(v1alpha1.CanaryTransitionAdopted)
		w.until("promoted", w.promotedAs("a-v2"))
	}},
	{"a CanaryRelease gets other content in the middle", func(w *world) {
		w.begins(50)
		w.cr.content, w.dirty = "v3", true
		w.say("user: config v3")
		w.until("promoted", w.promotedAs("a-v3"))
	}},
	{"a CanaryRelease does not name its Rollout any more", func(w *world) {
		w.begins(50)
		*w.cr = delegatedCanary{uid: "a", content: "v2", of: "v2", ready: 2, helm: 4, age: 9}
		w.say("user: removes spec.delegation")
		w.untilReason(v1alpha1.ReasonConflict)
	}},
	{"the pods of a CanaryRelease all go away while they get traffic", func(w *world) {
		w.begins(50)
		w.cr.broken = true
		w.until("rolled back", w.rolledBack)
	}},
	{"the adoption of a CanaryRelease fails, and a user deprecates it", func(w *world) {
		w.delegated()
		w.tries("a", "v2")
		w.cr.stuck = true
		w.until("adopting", func() bool { return w.cr.decision != nil })
		w.run(3600)
		w.asUser(v1alpha1.CanaryTransitionDeprecated)
		w.until("rolled back", w.rolledBack)
	}},
	{"the Rollout of a CanaryRelease is deleted in the middle", func(w *world) {
		w.begins(50)
		w.remove()
		w.until("gone", func() bool { return w.gone })
		w.untilWeight(0)
	}},
	{"the Rollout of a CanaryRelease is deleted while that is adopted", func(w *world) {
		w.delegated()
		w.tries("a", "v2")
		w.cr.stuck = true
		w.until("adopting", func() bool { return w.cr.decision != nil })
		w.remove()
		w.run(30)
		w.cr.stuck = false
		w.until("gone", func() bool { return w.gone })
	}},
	{"another actor writes the weight of a CanaryRelease", func(w *world) {
		w.begins(10)
		w.cr.delegation.Weight, w.dirty = 90, true
		w.say("another actor: weight 90")
		w.untilWeight(10)
		w.until("promoted", w.promotedAs("a-v2"))
	}},
}

func (w *world) asUser(t v1alpha1.CanaryTransition) {
	w.cr.byUser = t
	w.say("user: spec.transition %s", t)
}

// promotedAs reports whether the last release was a promotion of a revision.
func (w *world) promotedAs(revision string) func() bool {
	return func() bool {
		h := w.ro.Status.History
		return len(h) > 0 && h[0].Outcome == v1alpha1.OutcomePromoted && h[0].Revision == revision
	}
}

// TestWhatMeansNothingForACanaryReleaseIsRefused: it would seem to be applied.
func TestWhatMeansNothingForACanaryReleaseIsRefused(t *testing.T) {
	mirror, pods := int32(10), intstr.FromInt32(3)
	value := v1alpha1.TrafficDistribution("PreferSameZone")
	for want, change := range map[string]func(*v1alpha1.RolloutSpec){
		"spec.router: ":              func(s *v1alpha1.RolloutSpec) { s.Router = v1alpha1.RouterSMI },
		"spec.configuration: ":       func(s *v1alpha1.RolloutSpec) { s.Configuration = &v1alpha1.Configuration{} },
		"spec.trafficDistribution: ": func(s *v1alpha1.RolloutSpec) { s.TrafficDistribution = &value },
		"spec.proxyPods: ":           func(s *v1alpha1.RolloutSpec) { s.ProxyPods = &splitv1.ProxyPods{} },
		"spec.routeRefs: ": func(s *v1alpha1.RolloutSpec) {
			s.RouteRefs = []v1alpha1.RouteReference{{Kind: "HTTPRoute", Name: "web"}}
		},
		"spec.rollbackWindow: ":                   func(s *v1alpha1.RolloutSpec) { s.RollbackWindow = &v1alpha1.RollbackWindow{Revisions: 2} },
		"spec.strategy.steps[1].matches: ":        func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[1].Matches = []string{"testers"} },
		"spec.strategy.steps[0].mirror: ":         func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[0].Mirror = &mirror },
		"spec.strategy.steps[0].canaryReplicas: ": func(s *v1alpha1.RolloutSpec) { s.Strategy.Steps[0].CanaryReplicas = &pods },
	} {
		w := newWorld(t)
		w.delegated()
		w.tries("a", "v2")
		w.edit("a field", change)
		w.run(30)
		if m := readyMessage(w.ro); !strings.HasPrefix(m, want) || !strings.Contains(m, "remove it. (InvalidSpec)") {
			t.Errorf("got %q, want it to begin with %q", m, want)
		}
		if w.cr.held {
			t.Errorf("%s something was written all the same", want)
		}
	}
}

// TestACanaryReleaseIsDelegatedOnlyWithItsConsent: an adoption is a Helm upgrade, with rights
// that the author of a Rollout may not have.
func TestACanaryReleaseIsDelegatedOnlyWithItsConsent(t *testing.T) {
	w := newWorld(t)
	w.delegated()
	w.tries("a", "v2")
	w.cr.names = "another"
	w.untilReason(v1alpha1.ReasonConflict)
	w.run(60)
	if m := readyMessage(w.ro); !strings.Contains(m, `set its spec.delegation.rollout to "website"`) {
		t.Errorf("got %q", m)
	}
	if len(w.ro.Status.History) > 0 {
		t.Errorf("something was released: %v", w.ro.Status.History)
	}
	w.cr.names, w.dirty = w.ro.Name, true
	w.until("promoted", w.promotedAs("a-v2"))
}

// TestADelegationThatIsRefusedInTheMiddleIsStillWatched: a mistake in the spec does not leave a
// bad canary in its traffic.
func TestADelegationThatIsRefusedInTheMiddleIsStillWatched(t *testing.T) {
	w := newWorld(t)
	w.begins(50)
	w.edit("a mistake", func(s *v1alpha1.RolloutSpec) { s.Router = v1alpha1.RouterSMI })
	w.run(120)
	if got := w.split.observed; got != 50 {
		t.Fatalf("the weight is %d; want it to stay at 50\n%s", got, w.tail())
	}
	w.failures["v2"] = 20
	w.until("deprecated", func() bool { return w.cr.decision != nil && w.cr.decision.EndedAt != nil })
	if got := w.ro.Status.History[0].Outcome; got != v1alpha1.OutcomeRolledBack {
		t.Errorf("it ended as %s", got)
	}
}

// TestTheDeletionOfADelegatedRolloutIsNotHeldUpForEver: what it waits for may never come.
func TestTheDeletionOfADelegatedRolloutIsNotHeldUpForEver(t *testing.T) {
	w := newWorld(t)
	w.delegated()
	w.tries("a", "v2")
	w.cr.stuck = true
	w.until("adopting", func() bool { return w.cr.decision != nil })
	w.remove()
	w.run(defaultDeadlineSeconds - 10)
	if w.gone {
		t.Fatal("it did not wait for the adoption")
	}
	w.until("gone", func() bool { return w.gone })
	if w.cr.held {
		t.Error("its fields were not given up")
	}
}

const defaultDeadlineSeconds = int(strategy.DefaultProgressDeadline / 1e9)

func TestAnAbortComesTooLateForAnAdoption(t *testing.T) {
	w := newWorld(t)
	w.delegated()
	w.tries("a", "v2")
	w.cr.stuck = true
	w.until("adopting", func() bool { return w.cr.decision != nil })
	w.control(v1alpha1.ControlAbort, "a-v2")
	w.run(5)
	if c := w.ro.Status.Control; c == nil || !strings.Contains(c.Ignored, "to roll back, set its spec.transition to Deprecated") {
		t.Errorf("%+v", c)
	}
	if w.cr.delegation.Transition != v1alpha1.CanaryTransitionAdopted {
		t.Errorf("it gets %s", w.cr.delegation)
	}
	w.cr.stuck = false
	w.until("promoted", w.promotedAs("a-v2"))
}

func TestOfTwoRolloutsOfOneCanaryReleaseTheOlderDecides(t *testing.T) {
	w := newWorld(t)
	w.delegated()
	w.tries("a", "v2")
	o := w.observe()
	o.Rival = "older"
	d := Decide(o)
	w.ro.Status = d.Status
	if m := readyMessage(w.ro); !strings.Contains(m, `already claims the CanaryRelease "try" or the Service "website"`) {
		t.Errorf("got %q", m)
	}
	if len(d.Actions) > 0 {
		t.Errorf("it does %v", d.Actions)
	}
}

// TestAMistakeDoesNotKeepADelegationFromItsEnd: what was handed over, or rolled back, is seen
// through.
func TestAMistakeDoesNotKeepADelegationFromItsEnd(t *testing.T) {
	for outcome, failures := range map[string]int64{v1alpha1.OutcomePromoted: 0, v1alpha1.OutcomeRolledBack: 9} {
		w := newWorld(t)
		w.failures["v2"] = failures
		w.delegated()
		w.tries("a", "v2")
		w.until("decided", func() bool { return w.cr.delegation.Transition != "" })
		w.edit("a mistake", func(s *v1alpha1.RolloutSpec) { s.Router = v1alpha1.RouterSMI })
		w.until("ended", func() bool {
			h := w.ro.Status.History
			return w.cr.decision != nil && w.cr.decision.EndedAt != nil && len(h) == 1 && h[0].Outcome == outcome
		})
		w.checkQuiet()
	}
}
