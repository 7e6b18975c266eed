// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// A failed upgrade is tried again after a while that doubles with each revision that
// failed: every try runs the hooks of the release, and leaves a revision.
const (
	retryUpgrade     = time.Minute
	mostRetryUpgrade = time.Hour
)

// retryAfter is that while.
func (p *pass) retryAfter() time.Duration {
	pause := retryUpgrade
	for n := p.CanaryRelease.Spec.Version + 1; n < p.Release.Newest && pause < mostRetryUpgrade; n++ {
		pause *= 2
	}
	return min(pause, mostRetryUpgrade)
}

// upgrade calls Helm, unless the last time is not long enough ago. That there was one is on
// record before Helm is called: an operator that dies meanwhile, and begins anew, waits too.
func (p *pass) upgrade() {
	r := p.status.Release
	if r == nil { // Helm was called for an adoption whose record somebody removed
		r = &v1alpha1.CanaryHelmRelease{Revision: p.CanaryRelease.Spec.Version}
		p.status.Release = r
	}
	if failed := p.UpgradeFailedAt; p.UpgradeFailure != "" && (r.LastTryAt == nil || failed.After(r.LastTryAt.Time)) {
		r.LastTryAt, r.UpgradeTries = p.microOf(failed), max(r.UpgradeTries, 1)
	}
	if r.LastTryAt == nil {
		p.wait(v1alpha1.ReasonAdopting, "All traffic goes to the canary; upgrading release %s.", p.CanaryRelease.Spec.Release)
	} else {
		p.sayUpgradeFailed()
		// A clock that went back makes it no longer than once.
		if left := min(r.LastTryAt.Add(p.retryAfter()).Sub(p.Now), p.retryAfter()); left > 0 {
			p.wake(left)
			return
		}
	}
	r.UpgradeTries, r.LastTryAt = r.UpgradeTries+1, p.microOf(p.Now)
	p.do(Upgrade{})
}

func (p *pass) sayUpgradeFailed() {
	release := p.CanaryRelease.Spec.Release
	why := p.UpgradeFailure
	if why == "" { // the operator was started anew since
		why = fmt.Sprintf("it was broken off, or see `helm history %s`", release)
	}
	p.say(v1alpha1.ReasonUpgradeFailed, "The upgrade of release %s failed: %s. The canary keeps all traffic, and the upgrade is tried again after %s; set spec.transition to Deprecated to go back.",
		release, why, p.retryAfter())
}
