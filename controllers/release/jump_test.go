// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// suspend lets the cluster go on without the operator. When its process goes on, it sees
// for some seconds what it saw before: its watches have yet to catch up.
func (w *world) suspend(seconds, behind int) {
	w.t.Helper()
	before := w.observe()
	w.say("operator: suspended for %d s", seconds)
	for range seconds {
		w.passes()
	}
	w.behind = func(now state.Observation) state.Observation {
		before.Now, before.Rollout, before.Jump = now.Now, now.Rollout, now.Jump
		return before
	}
	w.run(behind)
	w.behind, w.dirty = nil, true
}

// inMidHold is a release at half of the traffic that lacks one of its two pods.
func inMidHold(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.ro.Spec.ProgressDeadline = "5m"
	w.steps(v1alpha1.Step{Weight: 50, Hold: "2h"})
	w.ready()
	w.setTemplate("v2")
	w.untilReason(v1alpha1.ReasonHolding)
	w.losesCanary(1)
	w.run(60)
	if !w.is(v1alpha1.ReasonWaitingForPods) {
		t.Fatal(readyMessage(w.ro))
	}
	return w
}

func TestADeadlineThatPassedWhileTheOperatorSleptIsNotJudgedOnWhatItSawBefore(t *testing.T) {
	t.Run("pods that are back keep the release", func(t *testing.T) {
		w := inMidHold(t)
		w.broken["v2"] = false
		w.suspend(3600, 30)
		w.run(300)
		if !w.is(v1alpha1.ReasonHolding) {
			t.Fatalf("%s\n%s", readyMessage(w.ro), w.tail())
		}
		w.run(5000)
		w.ready()
	})
	t.Run("pods that are still away end it a little later", func(t *testing.T) {
		w := inMidHold(t)
		w.suspend(3600, 30)
		resumed := w.now.Add(-30 * time.Second)
		w.until("rolled back", w.rolledBack)
		if took := w.now.Sub(resumed); took > state.CatchUpTime+10*time.Second {
			t.Errorf("rolled back after %s\n%s", took, w.tail())
		}
	})
	t.Run("pods that are still away end it though the operator sleeps again and again", func(t *testing.T) {
		w := inMidHold(t)
		w.suspend(3600, 30)
		w.suspend(600, 30)
		resumed := w.now.Add(-30 * time.Second)
		w.until("rolled back", w.rolledBack)
		if took := w.ro.Status.Decision.Time.Sub(resumed); took > 40*time.Second {
			t.Errorf("decided %s after it went on\n%s", took, w.tail())
		}
	})
	t.Run("a process that crashed meanwhile reads everything anew, and judges at once", func(t *testing.T) {
		w := inMidHold(t)
		w.suspend(3600, 0)
		w.forget()
		w.run(30)
		if !w.rolledBack() && w.ro.Status.Decision == nil {
			t.Errorf("%s\n%s", readyMessage(w.ro), w.tail())
		}
	})
	t.Run("a router that has confirmed meanwhile ends a deletion in order", func(t *testing.T) {
		w := inMidHold(t)
		w.routerLag = 120
		w.remove()
		w.run(5)
		w.suspend(3600, 30)
		w.until("gone", func() bool { return w.gone })
		if all := strings.Join(w.log, "\n"); strings.Contains(all, "did not confirm within") || !strings.Contains(all, "weight 0 live") {
			t.Errorf("the split went with its weights\n%s", all)
		}
	})
}

func TestAHookThatTimedOutWhileTheOperatorSleptMayStillAnswer(t *testing.T) {
	w := newWorld(t)
	w.ro.Spec.Hooks = []v1alpha1.Hook{{Name: "tests", When: v1alpha1.HookBeforePromotion, Timeout: "10m"}}
	w.ready()
	w.setTemplate("v2")
	w.until("it is asked", func() bool { return len(w.ro.Status.Hooks) > 0 })
	w.run(60)
	w.suspend(3600, 30)
	w.answer(state.Answer{Tried: true, Final: true, Taken: true})
	w.ready()
}
