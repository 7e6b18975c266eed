// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// outage takes the pods of versions away, which come back when they recover.
func (w *world) outage(templates ...string) {
	for _, rs := range w.rss {
		for _, template := range templates {
			if rs.template == template {
				w.broken[template], rs.available = true, 0
				w.lost, w.answered = w.lost || rs.owner == kit.OwnerDeployment, false
				w.touch(rs)
			}
		}
	}
	w.dirty = true
	w.say("nodes: the pods of %v are not available", templates)
}

func (w *world) recover(template string) {
	w.broken[template] = false
	w.say("nodes: the pods of %s come back", template)
	for _, rs := range w.rss {
		if rs.template == template {
			w.until("they are back", func() bool { return rs.available == rs.replicas })
			w.lost = w.lost && rs.owner != kit.OwnerDeployment
		}
	}
}

// halfway is a release at half of the traffic.
func halfway(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.ro.Spec.ProgressDeadline = "5m"
	w.steps(v1alpha1.Step{Weight: 50, Hold: "1h"})
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonHolding)
	return w
}

func TestWhatBefallsBothVersionsIsNoEvidenceAgainstTheCanary(t *testing.T) {
	t.Run("the release waits, however long it lasts, and goes on where it was", func(t *testing.T) {
		w := halfway(t)
		live := w.ro.Status.Step.ProgrammedAt
		w.outage("v1", "v2")
		w.failures["v2"] = 100 // what still reaches a pod is lost
		w.run(600)             // the deadline is over
		if !w.is(v1alpha1.ReasonWaitingForPods) || !strings.Contains(readyMessage(w.ro), "none of stable's is available either") {
			t.Fatalf("%s\n%s", readyMessage(w.ro), w.tail())
		}
		w.recover("v1")
		w.run(10) // stable's pods are back first
		w.failures["v2"] = 0
		w.run(10)
		w.recover("v2")
		w.untilReason(v1alpha1.ReasonHolding)
		if !w.ro.Status.Step.ProgrammedAt.Equal(live) || w.ro.Status.Step.InterruptedAt != nil {
			t.Errorf("the step began anew: %+v\n%s", w.ro.Status.Step, w.tail())
		}
		w.ready()
		if got := w.ro.Status.History[0].Outcome; got != v1alpha1.OutcomePromoted {
			t.Errorf("it ended as %s", got)
		}
	})
	t.Run("a canary that does not come back with stable is rolled back", func(t *testing.T) {
		w := halfway(t)
		w.outage("v1", "v2")
		w.run(60)
		w.recover("v1")
		recovered := w.now
		w.until("rolled back", w.rolledBack)
		if took := w.now.Sub(recovered); took > 2*time.Minute {
			t.Errorf("rolled back after %s\n%s", took, w.tail())
		}
		if got := w.ro.Status.Decision.Reason; got != v1alpha1.ReasonCanaryUnavailable {
			t.Errorf("the reason is %s", got)
		}
	})
	t.Run("an outage reaches the canary first", func(t *testing.T) {
		w := halfway(t)
		w.unreported = true
		w.outage("v2")
		w.run(5)
		w.outage("v1")
		w.run(20)
		w.recover("v1")
		w.recover("v2")
		w.untilReason(v1alpha1.ReasonHolding)
	})
	t.Run("the node of the canary alone does not report", func(t *testing.T) {
		w := halfway(t)
		w.unreported = true
		w.outage("v2")
		lost := w.now
		w.until("rolled back", w.rolledBack)
		if took := w.now.Sub(lost); took < time.Minute || took > 3*time.Minute {
			t.Errorf("rolled back after %s\n%s", took, w.tail())
		}
	})
	t.Run("a canary that crashes is rolled back at once", func(t *testing.T) {
		w := halfway(t)
		w.outage("v2")
		lost := w.now
		w.until("decided", func() bool { return w.ro.Status.Decision != nil })
		if took := w.now.Sub(lost); took > 2*time.Second {
			t.Errorf("decided after %s\n%s", took, w.tail())
		}
	})
}
