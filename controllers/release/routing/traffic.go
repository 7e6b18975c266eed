// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/release/strategy"
)

// StopTraffic sends all traffic to stable, and reports whether that is live.
func StopTraffic(d *state.Draft) (done bool) {
	s := &d.Snapshot
	if withoutTraffic(s) {
		return true
	}
	d.Request(strategy.Route{})
	if Stopped(s) {
		return true
	}
	if m := d.Maker; m != nil {
		m.RepairBackends(d)
	}
	d.Wait(v1alpha1.ReasonRollingBack, "Sending all traffic to stable: %s.", TrafficWait(s, strategy.Route{}))
	return false
}

// Stopped reports whether the canary gets no traffic.
func Stopped(s *state.Snapshot) bool {
	return withoutTraffic(s) || s.Routed(strategy.Route{}) || unreachable(s)
}

// withoutTraffic reports whether there is nothing that could send the canary traffic.
func withoutTraffic(s *state.Snapshot) bool {
	served := s.Split.Presence != kit.Absent && s.Split.Ours && !s.Split.Unserved && s.Service.Presence != kit.Absent
	return !served || s.Split.Deleting && s.Split.Observed <= 0 || s.Unconfirmed || s.CanaryIsStable()
}

// unreachable reports whether no request can reach a canary, although the router
// can't confirm it: there is none, and no weight ever was live.
func unreachable(s *state.Snapshot) bool {
	return s.Scales() && s.Requests(strategy.Route{}) && s.Split.Observed < 0 && !s.CanaryPods(nil)
}

// TrafficWait says why a route is not live yet.
func TrafficWait(s *state.Snapshot, r strategy.Route) string {
	if !s.Requests(r) {
		return "the router has not confirmed it yet"
	}
	return s.Split.Why()
}
