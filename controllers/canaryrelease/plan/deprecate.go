// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// patience is how long a deletion waits for a router that does not confirm.
const patience = 10 * time.Minute

// deprecate takes everything out.
func (p *pass) deprecate() {
	p.freeze()
	if p.takeDown() {
		p.end()
		return
	}
	p.state.message = strings.TrimSpace("Taking the canary out, since " + p.status.Decision.Message + ". " + p.state.message)
	if p.state.reason != v1alpha1.ReasonUpgradeFailed {
		p.state.reason = v1alpha1.ReasonDeprecating
	}
}

// freeze holds the Deployments that somebody changed under the canary: their pods take
// the requests until the splits are gone, and would be replaced meanwhile.
func (p *pass) freeze() {
	for i := range p.Workloads {
		if w := &p.Workloads[i]; p.drifted(w) && !w.Paused {
			p.do(SetHold{Workload: w.Name, Paused: true})
		}
	}
}

// takeDown takes out whatever was made, in the order in which nothing is lost. It reports
// whether nothing is left.
func (p *pass) takeDown() bool {
	none := func(*Workload, *ReplicaSet) bool { return false }
	if !p.dropCanaries(none) || !p.dropServices(func(*Service) bool { return false }) {
		return false
	}
	free := p.letGo() // needs no right of the ServiceAccount's, as the copies do
	return p.dropCopies(func(Copy) bool { return false }) && free
}

// overdue reports whether a deletion takes too long, and looks again when it does.
func (p *pass) overdue() bool {
	since := p.CanaryRelease.DeletionTimestamp
	if since.IsZero() {
		return false
	}
	left := since.Add(patience).Sub(p.Now)
	if left > 0 {
		p.wake(left)
	}
	return left <= 0
}

// letGo gives the Deployments back that were held, and reports whether all are. One whose
// pods would be those of an upgrade that failed stays paused until Helm has rolled that
// back: they were never good.
func (p *pass) letGo() bool {
	done := true
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if w.Presence != Present || w.Deleting || !w.Held || !w.Paused {
			continue
		}
		if p.unproven(w) {
			if p.stranded(w) {
				continue
			}
			done = false
			continue
		}
		done = false
		p.do(SetHold{Workload: w.Name, Paused: false})
		p.wait(v1alpha1.ReasonCleaningUp, "Giving the Deployment %s back.", w.Name)
	}
	return done
}

// unproven reports whether the Deployment's pods would be those of an upgrade that failed.
func (p *pass) unproven(w *Workload) bool {
	if s := p.stable(w); s == nil || s.Current {
		return false
	}
	return p.Release.Presence == Unknown || p.Release.Ours && p.Release.Deployed != p.Release.Newest
}

// stranded says what a person has to do about such a Deployment, and reports whether it is
// left as it is, because the CanaryRelease is being deleted.
func (p *pass) stranded(w *Workload) bool {
	spec, unknown := p.CanaryRelease.Spec, p.Release.Presence == Unknown
	if !p.CanaryRelease.DeletionTimestamp.IsZero() && (!unknown || p.overdue()) {
		p.note(true, v1alpha1.ReasonUpgradeFailed, "The Deployment %s stays paused, since its pods would be those of a failed upgrade; "+
			"run `helm rollback %s %d` and set its spec.paused to false", w.Name, spec.Release, spec.Version)
		return true
	}
	if unknown {
		p.say(v1alpha1.ReasonUpgradeFailed, "The Deployment %s stays paused, since its pods may be those of a failed upgrade. %s.", w.Name, strings.TrimSuffix(p.Release.Problem, "."))
	} else {
		p.say(v1alpha1.ReasonUpgradeFailed, "The Deployment %s stays paused, since its pods would be those of revision %d, which is %s; run `helm rollback %s %d`.",
			w.Name, p.Release.Newest, word(p.Release.Status), spec.Release, spec.Version)
	}
	p.state.stalled = true
	return false
}
