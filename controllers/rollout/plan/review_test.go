// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// notBusy fails the test when the operator looks again although nothing changes.
func (w *world) notBusy() {
	w.t.Helper()
	for range 120 {
		w.tick()
		if !w.due.IsZero() && w.due.Sub(w.now) < time.Second/2 {
			w.t.Fatalf("looks again after %v, time and again\n%s", w.due.Sub(w.now), w.tail())
		}
	}
}

func TestAnAnalysisWithoutDataDoesNotKeepTheOperatorBusy(t *testing.T) {
	t.Run("after it failed", func(t *testing.T) {
		w := newWorld(t)
		w.ro.Spec.Strategy.OnFailure = v1alpha1.OnFailurePause
		w.failures["v2"] = 5
		w.ready()
		w.setTemplate("v2")
		w.untilReason(v1alpha1.ReasonAnalysisFailed)
		w.rps = 0
		w.run(60)
		w.notBusy()
	})
	t.Run("at the next step", func(t *testing.T) {
		w := newWorld(t)
		w.ready()
		w.setTemplate("v2")
		w.untilWeight(10)
		w.run(25)
		w.until("weight 50 asked", func() bool { return w.split.requested.Weight == 50 })
		w.rps = 0
		w.run(60)
		w.notBusy()
	})
}
