// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// restore has everything come back without its status and its owners, and without what another
// CanaryRelease of the name left, which the shell removes first. The Deployments control all versions.
func (w *world) restore() {
	w.say("user: restores a backup")
	w.cr.Status, w.cr.Finalizers, w.failure = v1alpha1.CanaryReleaseStatus{}, nil, ""
	w.triedAt, w.failedAt = w.triedAt.Add(-retryUpgrade), w.failedAt.Add(-retryUpgrade)
	for _, rs := range w.rss {
		if rs.marked { // the canary of another CanaryRelease has another name
			rs.name, rs.revision = rs.name+"-before", rs.revision+"-before"
		}
		rs.owner, rs.marked = kit.OwnerDeployment, false
	}
	for _, s := range w.services {
		s.split, s.stable, s.canary = nil, "", ""
	}
}

func (w *world) says() string {
	ready := meta.FindStatusCondition(w.cr.Status.Conditions, v1alpha1.ConditionReady)
	return ready.Reason + ": " + ready.Message
}

// TestAnAdoptionGoesOnWithoutItsCanaryInARestoredBackup: Helm was called, which its records say.
func TestAnAdoptionGoesOnWithoutItsCanaryInARestoredBackup(t *testing.T) {
	for _, failed := range []string{"before", "after"} {
		w := newWorld(t)
		w.run(30)
		w.failUpgrade = failed
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(30)
		if !w.helm.ours || !w.deps["web"].paused {
			t.Fatalf("Helm was not called\n%s", w.history())
		}
		w.restore()
		w.run(10)
		if got := w.says(); !strings.HasPrefix(got, "UpgradeFailed: The upgrade of release shop failed: a hook failed. It is tried again after 1m0s; the Deployments make the pods.") {
			t.Errorf("failed %s: it says %s\n%s", failed, got, w.history())
		}
		w.failUpgrade = ""
		w.run(120)
		if d := w.deps["web"]; d.paused || d.template != "new" || !w.cr.Status.Decision.EndedAt.After(w.cr.Status.Decision.Time.Time) {
			t.Errorf("failed %s: the Deployment is %+v; it says %s\n%s", failed, d, w.says(), w.history())
		}
	}
}

// TestADeploymentThatWasHeldIsReleasedInARestoredBackup before the canary is made again.
func TestADeploymentThatWasHeldIsReleasedInARestoredBackup(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.restore()
	w.deps["web"].paused, w.deps["web"].held = true, true
	for _, rs := range w.rss { // while the pods started, the controller scaled both versions to what it allows
		if pods := map[string]int32{"web-1": 1, "web-d1-before": 4}[rs.name]; pods > 0 {
			rs.replicas, rs.existing, rs.available = pods, pods, pods
		}
	}
	w.run(30)
	if d := w.deps["web"]; d.paused || !strings.HasPrefix(w.says(), "Serving") {
		t.Errorf("the Deployment is %+v; it says %s\n%s", d, w.says(), w.history())
	}
}
