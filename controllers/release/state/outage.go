// SPDX-License-Identifier: Apache-2.0

package state

import "time"

// settleTime is enough for the requests that an outage broke to end, and for routers and
// nodes to hear of the pods that are back.
const settleTime = 15 * time.Second

// When the API server was away, the control plane takes every node for lost until it has
// heard from it again, and each pod with it, for some seconds. The same happens to the pods
// of a node that restarts. What befalls both versions at once is no evidence against one of
// them, and their pods do not come back in the same moment:
//
//	canary  stable  then
//	------  ------  ------------------------------------------------------------
//	0       0       an outage: wait, however long it lasts
//	0       some    an outage until just now: wait for CatchUpTime
//	0       some    its containers were ready when their nodes reported last: the
//	                outage may be about to reach stable; wait for CatchUpTime
//	0       some    its pods were evicted or deleted, and others start in their place: wait
//	                for CatchUpTime
//	0       some    otherwise it is the canary's fault

// Outage reports whether the canary gets traffic and neither version has an available pod.
func (s *Snapshot) Outage() bool {
	return s.StableDown && s.Canary != nil && s.Canary.Available == 0 && s.Called()
}

// Recovering reports whether there is an outage, or was one just now, and when to look again.
// Until then nothing that the pods lack is the canary's fault.
func (s *Snapshot) Recovering() (until time.Time, recovering bool) {
	if s.Outage() {
		return s.Now.Add(CatchUpTime), true
	}
	until = s.OutageAt.Add(CatchUpTime)
	return until, !s.OutageAt.IsZero() && s.Now.Before(until)
}

// Unreported reports whether the canary may lack available pods only because their nodes
// did not report, or because others start in their place, since not longer ago than an outage
// takes to reach all pods.
func (s *Snapshot) Unreported() bool {
	step := s.Status.Step
	return s.CanaryExcused && (step == nil || step.InterruptedAt == nil || s.Now.Before(step.InterruptedAt.Add(CatchUpTime)))
}

// Befell reports whether a window of traffic that began then holds what an outage did to both
// versions, to one of them a little longer than to the other.
func (s *Snapshot) Befell(start time.Time) bool {
	return s.Outage() || !s.OutageAt.IsZero() && start.Before(s.OutageAt.Add(settleTime))
}
