// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"cmp"
	"strings"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// routerTimeout is how long a deletion waits for a router that does not confirm.
const routerTimeout = 10 * time.Minute

// deprecate removes everything, and reports whether that is done.
func deprecate(d *draft) (done bool) {
	holdDrifted(d)
	if remove(d) {
		end(d)
		return true
	}
	d.State.Message = strings.TrimSpace("Removing the canary, since " + d.status.Decision.Message + ". " + d.State.Message)
	if d.State.Reason != v1alpha1.ReasonUpgradeFailed {
		d.State.Reason = v1alpha1.ReasonDeprecating
	}
	return false
}

// holdDrifted pauses the Deployments that another user or tool changed under the canary: their
// pods take the requests until the splits are gone, and would be replaced meanwhile.
func holdDrifted(d *draft) {
	for i := range d.Workloads {
		if w := &d.Workloads[i]; d.drifted(w) && !w.Paused {
			d.Do(SetHold{Workload: w.Name, Paused: true})
		}
	}
}

// remove removes all that was made, in the order in which no request is lost. It reports
// whether nothing is left.
func remove(d *draft) bool {
	none := func(*Workload, *kit.ReplicaSet) bool { return false }
	if !dropCanaries(d, none) || !dropServices(d, func(*Service) bool { return false }) {
		return false
	}
	free := restoreAll(d) // needs no right of the ServiceAccount's, as the copies do
	return dropCopies(d, func(Copy) bool { return false }) && free
}

// overdueAt is when a deletion takes too long; zero when there is none.
func (s *snapshot) overdueAt() time.Time {
	if !s.deleting() {
		return time.Time{}
	}
	return s.CanaryRelease.DeletionTimestamp.Add(routerTimeout)
}

// overdue reports whether a deletion takes too long.
func (s *snapshot) overdue() bool { return s.deleting() && !s.Now.Before(s.overdueAt()) }

// restoreAll restores the Deployments that Serin paused, and reports whether all are. One
// whose pods would be those of a failed upgrade stays paused until Helm has rolled that back.
func restoreAll(d *draft) bool {
	done := true
	for i := range d.Workloads {
		w := &d.Workloads[i]
		if w.Presence != kit.Present || w.Deleting || !w.Held || !w.Paused {
			continue
		}
		if unproven(&d.snapshot, w) {
			if stranded(d, w) {
				continue
			}
			done = false
			continue
		}
		done = false
		d.Do(SetHold{Workload: w.Name, Paused: false})
		d.Wait(v1alpha1.ReasonCleaningUp, "Restoring the Deployment %s.", w.Name)
	}
	return done
}

// unproven reports whether the Deployment's pods would be those of an upgrade that failed.
func unproven(s *snapshot, w *Workload) bool {
	if stable := s.stable(w); stable == nil || stable.Current {
		return false
	}
	return s.Release.Presence == kit.Unknown || s.Release.Deployed != s.Release.Newest
}

// proven is the revision to go back to after a failed upgrade.
func proven(d *draft) int32 { return cmp.Or(d.Release.Deployed, d.CanaryRelease.Spec.Version) }

// stranded says what the user has to do about such a Deployment, and reports whether it is
// left as it is, because the CanaryRelease is being deleted.
func stranded(d *draft, w *Workload) bool {
	spec, unknown := d.CanaryRelease.Spec, d.Release.Presence == kit.Unknown
	if !d.CanaryRelease.DeletionTimestamp.IsZero() && (!unknown || d.overdue()) {
		d.Note(true, v1alpha1.ReasonUpgradeFailed, "The Deployment %s stays paused, since its pods would be those of a failed upgrade; "+
			"run `helm rollback %s %d` and set its spec.paused to false", w.Name, spec.Release, proven(d))
		return true
	}
	if unknown {
		d.Say(v1alpha1.ReasonUpgradeFailed, "The Deployment %s stays paused, since its pods may be those of a failed upgrade. %s.", w.Name, strings.TrimSuffix(d.Release.Problem, "."))
	} else {
		d.Say(v1alpha1.ReasonUpgradeFailed, "The Deployment %s stays paused, since its pods would be those of revision %d, which is %s; run `helm rollback %s %d`.",
			w.Name, d.Release.Newest, word(d.Release.Status), spec.Release, proven(d))
	}
	d.State.Stalled = true
	return false
}
