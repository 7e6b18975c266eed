// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// KeepBackend makes the Service of a version select a revision, and reports whether it
// does already.
func KeepBackend(d *kit.Draft, v kit.Version, b *kit.Backend, revision string) (done bool) {
	if b.Selects(revision) && b.Ours && b.UpToDate {
		return true
	}
	d.Do(kit.ApplyBackend{Version: v, Revision: revision})
	return false
}

// DropSplit deletes a TrafficSplit of Serin's, and reports whether it is gone.
func DropSplit(d *kit.Draft, s *kit.Split, service string) (gone bool) {
	if s.Presence != kit.Present || !s.Ours {
		return true
	}
	if !s.Deleting {
		d.Do(kit.DeleteSplit{Object: s.Object, Service: service})
	}
	return false
}

// DropBackends deletes the Services of the versions, the canary's first, and reports
// whether they are gone.
func DropBackends(d *kit.Draft, service string, stable, canary *kit.Backend) (gone bool) {
	gone = true
	drop := func(role string, b *kit.Backend) {
		if b.Presence == kit.Present && b.Ours {
			gone = false
			d.Do(kit.DeleteBackend{Object: b.Object, Version: kit.Version{Service: service, Role: role}})
		}
	}
	drop(v1alpha1.RoleCanary, canary)
	drop(v1alpha1.RoleStable, stable)
	return gone
}
