// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// blueGreenAt are the moments of a blue-green release at which the new version has all its pods.
var blueGreenAt = map[string]func(*stage){
	"before the switch": func(p *stage) { p.waitReason(v1alpha1.ReasonWaitingForApproval) },
	"after the switch": func(p *stage) {
		p.waitReason(v1alpha1.ReasonWaitingForApproval)
		p.decide(v1alpha1.ControlPromote)
		p.live(100)
	},
}

// beginBlueGreen plays until v2 has all its pods.
func beginBlueGreen(t *testing.T, router v1alpha1.RouterName, reach func(*stage)) *stage {
	t.Helper()
	p := begin(t, func(c *cast) {
		c.guarded = true
		c.rollout.Spec.Router = router
		c.rollout.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyBlueGreen, BlueGreen: &v1alpha1.BlueGreen{Until: v1alpha1.UntilManual, ScaleDownDelay: "1h"}}
	})
	p.setImage(imageV2)
	reach(p)
	return p
}

// eachBlueGreen plays a restore of each of these moments.
func eachBlueGreen(t *testing.T, play func(p *stage, mode restoreMode)) {
	t.Helper()
	for at, reach := range blueGreenAt {
		for _, router := range []v1alpha1.RouterName{v1alpha1.RouterNginx, v1alpha1.RouterNone} {
			for _, mode := range restoreModes() {
				t.Run(at+" "+string(router)+" "+mode.name, func(t *testing.T) {
					t.Parallel()
					play(beginBlueGreen(t, router, reach), mode)
				})
			}
		}
	}
}

// settles waits until the new version is stable, or is released from its first step again.
func (p *stage) settles() (again bool) {
	p.Helper()
	p.eventually("the new version is stable, or released again", func(context.Context) bool {
		st := p.rollout().Status
		is, _, _ := ready(p.rollout())
		again = st.Step != nil && st.Step.ProgrammedAt != nil
		return is && p.stableImage() == imageV2 || again
	})
	return again
}

// waitGivenBack waits until nothing is left of the release of the backup, whose split comes last.
func (p *stage) waitGivenBack() {
	p.Helper()
	p.eventually("nothing is left of the release", func(ctx context.Context) bool { return len(leftovers(ctx, admin, p.namespace)) == 0 })
	p.checkGivenBack()
}

// TestABackupInWhichTheNewVersionHadAllItsPodsThatIsRestoredHasThatVersion without steps, or releases it
// from its first step again. The Deployment controller decides which: it leaves the old version no pods
// where those of the new one are ready when it sees them, and otherwise may scale down either.
func TestABackupInWhichTheNewVersionHadAllItsPodsThatIsRestoredHasThatVersion(t *testing.T) {
	t.Parallel()
	eachBlueGreen(t, func(p *stage, mode restoreMode) {
		q := p.restoredElsewhere(mode)
		again := q.settles()
		if mode.running { // until then, Service and Deployment controller may choose different versions
			q.begun = q.moment()
		}
		if again {
			if pods := q.pods(); len(pods[imageV1]) != 4 || len(pods[imageV2]) != 4 {
				q.Errorf("while it is released again: pods %v", pods)
			}
			q.decide(v1alpha1.ControlPromoteFull)
			q.waitReady()
		}
		q.checkPods(imageV2, 4)
		q.waitGivenBack()
		q.checkNoCanary()
	})
}

// TestADeploymentThatIsLeftOutOfARestoreAndMadeWithTheStableVersionIsThatVersion, although the new
// version had all its pods in the backup.
func TestADeploymentThatIsLeftOutOfARestoreAndMadeWithTheStableVersionIsThatVersion(t *testing.T) {
	t.Parallel()
	eachBlueGreen(t, func(p *stage, mode restoreMode) {
		q := p.restoredWith(mode, func(s *scene, objects []*unstructured.Unstructured) {
			s.restore(slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Deployment" && o.GetName() == "website"
			}), mode)
			if mode.running {
				s.eventually("the split is removed", func(ctx context.Context) bool {
					return apierrors.IsNotFound(admin.Get(ctx, s.key("website"), &splitv1.TrafficSplit{}))
				})
			}
			s.create(deployment("website", 4))
		})
		q.waitReady()
		q.checkPods(imageV1, 4)
		q.waitGivenBack()
		if q.deployment().Spec.Paused {
			q.Error("the Deployment is paused")
		}
		q.setImage(imageV2)
		q.waitReason(v1alpha1.ReasonWaitingForApproval)
	})
}
