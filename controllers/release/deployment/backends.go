// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/versions"
)

// KeepBackends writes the Services of the versions that are not what they are to be.
func (Target) KeepBackends(d *state.Draft) {
	if d.ByReplicas || d.Stable() == nil {
		return
	}
	versions.KeepBackend(&d.Draft, kit.Version{Role: v1alpha1.RoleStable}, &d.StableService, d.Status.Stable.Revision)
	versions.KeepBackend(&d.Draft, kit.Version{Role: v1alpha1.RoleCanary}, &d.CanaryService, d.Revision)
}

// RepairBackends writes the Services of the versions again when the router can't
// carry the split because of them: without that, traffic could never be removed
// from the canary.
func (Target) RepairBackends(d *state.Draft) {
	if s := d.Status.Stable; s != nil {
		repairBackend(d, v1alpha1.RoleStable, d.StableService, s.Revision)
	}
	if c := d.Status.Canary; c != nil {
		repairBackend(d, v1alpha1.RoleCanary, d.CanaryService, c.Revision)
	}
}

func repairBackend(d *state.Draft, role string, b kit.Backend, revision string) {
	bad := b.Presence == kit.Absent || b.Presence == kit.Present && b.Ours && (b.Revision != revision || !b.UpToDate)
	// A Service that can't be split is no model for another one.
	if bad && d.Service.Presence == kit.Present && d.Service.Problem == "" {
		d.Do(kit.ApplyBackend{Version: kit.Version{Role: role}, Revision: revision})
	}
}

// RemoveBackends deletes the Services of the versions, once requests can't go to them any
// more.
func (Target) RemoveBackends(d *state.Draft) (done bool) {
	if drains(d) {
		return false
	}
	done = versions.DropBackends(&d.Draft, "", &d.StableService, &d.CanaryService)
	if !done {
		d.Wait(v1alpha1.ReasonCleaningUp, "Removing the Services of the individual versions.")
	}
	return done
}

// drains waits while requests may still go to the Services of the versions, although the
// split is gone, and reports whether it does.
func drains(d *state.Draft) bool {
	end := d.Split.GoneSince.Add(d.DrainTime)
	if d.DrainTime == 0 || d.Status.Weight == nil || !d.Now.Before(end) {
		return false
	}
	d.Wait(v1alpha1.ReasonCleaningUp, "Keeping the Services of the individual versions until every reader of the TrafficSplit has seen its deletion.")
	d.Wake(end)
	return true
}
