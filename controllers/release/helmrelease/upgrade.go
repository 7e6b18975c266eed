// SPDX-License-Identifier: Apache-2.0

package helmrelease

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
func retryAfter(s *snapshot) time.Duration {
	pause := retryUpgrade
	for n := s.CanaryRelease.Spec.Version + 1; n < s.Release.Newest && pause < mostRetryUpgrade; n++ {
		pause *= 2
	}
	return min(pause, mostRetryUpgrade)
}

// upgrade calls Helm, unless the last time is not long enough ago. That there was one is on
// record before Helm is called: an operator that dies meanwhile, and begins anew, waits too.
func upgrade(d *draft) {
	r := d.status.Release
	if r == nil { // Helm was called for an adoption whose record was removed
		r = &v1alpha1.CanaryHelmRelease{Revision: d.CanaryRelease.Spec.Version}
		d.status.Release = r
	}
	if d.UpgradeWaits != "" {
		// Helm was not called: an operator that begins anew must not take it for interrupted.
		if r.LastTryAt != nil {
			r.UpgradeTries, r.LastTryAt = max(r.UpgradeTries-1, 0), nil
		}
		if !d.UpgradeTurn {
			d.Wait(v1alpha1.ReasonAdopting, "All traffic goes to the canary; the upgrade of release %s waits for its turn: %s.", d.CanaryRelease.Spec.Release, d.UpgradeWaits)
			return
		}
	}
	if failed := d.UpgradeFailedAt; d.UpgradeFailure != "" && (r.LastTryAt == nil || failed.After(r.LastTryAt.Time)) {
		r.LastTryAt, r.UpgradeTries = d.microOf(failed), max(r.UpgradeTries, 1)
	}
	if r.LastTryAt == nil {
		d.Wait(v1alpha1.ReasonAdopting, "All traffic goes to the canary; upgrading release %s.", d.CanaryRelease.Spec.Release)
	} else {
		sayUpgradeFailed(d)
		// A clock that went back makes it no longer than once.
		if left := min(r.LastTryAt.Add(retryAfter(&d.snapshot)).Sub(d.Now), retryAfter(&d.snapshot)); left > 0 {
			d.WakeIn(left)
			return
		}
	}
	r.UpgradeTries, r.LastTryAt = r.UpgradeTries+1, d.microOf(d.Now)
	d.Do(Upgrade{})
}

func sayUpgradeFailed(d *draft) {
	release := d.CanaryRelease.Spec.Release
	why := d.UpgradeFailure
	if why == "" { // the operator was started anew since
		why = fmt.Sprintf("it was interrupted; see `helm history %s`", release)
	}
	d.Say(v1alpha1.ReasonUpgradeFailed, "The upgrade of release %s failed: %s. The canary keeps all traffic, and the upgrade is tried again after %s; set spec.transition to Deprecated to end the canary.",
		release, why, retryAfter(&d.snapshot))
}
