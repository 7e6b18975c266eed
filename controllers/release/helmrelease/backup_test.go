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
	w.helm.ours = w.helm.ours && w.helm.deployed == w.helm.newest
	for _, rs := range w.rss {
		if rs.marked { // the canary of another CanaryRelease has another name
			rs.name, rs.revision = rs.name+"-before", rs.revision+"-before"
			rs.unpromoted = rs.owner == kit.OwnerSerin && rs.template != w.deps[rs.dep].template
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

// TestADeploymentStaysPausedAfterAFailedUpgradeInARestoredBackup, as before: its pods would be those of the
// failed upgrade.
func TestADeploymentStaysPausedAfterAFailedUpgradeInARestoredBackup(t *testing.T) {
	for transition, why := range map[v1alpha1.CanaryTransition]string{
		v1alpha1.CanaryTransitionDeprecated: "spec.transition is Deprecated",
		v1alpha1.CanaryTransitionAdopted:    "revision 5 of release shop was not made by this CanaryRelease",
		v1alpha1.CanaryTransitionNone:       "revision 5 of release shop was not made by this CanaryRelease",
	} {
		w := newWorld(t)
		w.run(30)
		w.failUpgrade = "after"
		w.transition(v1alpha1.CanaryTransitionAdopted)
		w.run(30)
		w.transition(v1alpha1.CanaryTransitionDeprecated)
		w.run(30)
		w.restore()
		w.cr.Spec.Transition = transition
		w.run(30)
		want := "UpgradeFailed: Removing the canary, since " + why + ". " +
			"The Deployment web stays paused, since its pods would be those of revision 5, which is failed; run `helm rollback shop 4`."
		if d := w.deps["web"]; !d.paused || d.template != "new" || w.says() != want {
			t.Errorf("%q: the Deployment is %+v; it says %s\n%s", transition, d, w.says(), w.history())
		}
		w.say("user: helm rollback")
		w.helm.newest, w.helm.deployed, w.helm.status, w.deps["web"].template = 6, 6, "deployed", "old"
		w.run(30)
		if d := w.deps["web"]; d.paused || !strings.HasPrefix(w.says(), "Deprecated: ") {
			t.Errorf("%q: after it was rolled back, the Deployment is %+v; it says %s\n%s", transition, d, w.says(), w.history())
		}
	}
}

// scaleBefore gives the versions the pods that they have when a restored Deployment which is held was
// scaled to what it allows while they started.
func (w *world) scaleBefore() {
	w.deps["web"].paused, w.deps["web"].held = true, true
	for _, rs := range w.rss {
		if pods := map[string]int32{"web-1": 1, "web-d1-before": 4}[rs.name]; pods > 0 {
			rs.replicas, rs.existing, rs.available = pods, pods, pods
		}
	}
}

// TestADeploymentOfWhichTheCanaryHasMorePodsIsReleasedInARestoredBackup, although Helm's upgrade failed: it had
// changed nothing.
func TestADeploymentOfWhichTheCanaryHasMorePodsIsReleasedInARestoredBackup(t *testing.T) {
	w := newFailedUpgrade(t)
	w.restore()
	w.scaleBefore()
	w.run(60)
	if d := w.deps["web"]; d.paused || d.template != "old" || !strings.HasPrefix(w.says(), "Deprecated: ") {
		t.Errorf("the Deployment is %+v; it says %s\n%s", d, w.says(), w.history())
	}
	for _, rs := range w.rss {
		if want := map[string]int32{"web-1": 4}[rs.name]; rs.dep == "web" && rs.existing != want {
			t.Errorf("%s has %d pods\n%s", rs.name, rs.existing, w.history())
		}
	}
}

// TestADeploymentThatWasHeldIsReleasedInARestoredBackup before the canary is made again.
func TestADeploymentThatWasHeldIsReleasedInARestoredBackup(t *testing.T) {
	w := newWorld(t)
	w.run(30)
	w.restore()
	w.scaleBefore()
	w.run(30)
	if d := w.deps["web"]; d.paused || !strings.HasPrefix(w.says(), "Serving") {
		t.Errorf("the Deployment is %+v; it says %s\n%s", d, w.says(), w.history())
	}
}
