// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// The requests that match none of a limited split's groups go to the root Service, by which the
// specification means what that selects. While its traffic goes through proxies it leads to
// these, so a router with proxies makes a Service with what the root Service's owner declares.

// unmatchedTime is how long such a Service exists before proxies use it: every node has to know
// its address and its endpoints. Until then they serve what they served before.
const unmatchedTime = 2 * time.Second

// Settle leaves the Service for the requests that match none out of services while it is too
// young to be used, and returns how long it still is. Services by name.
func Settle(split *splitv1.TrafficSplit, services map[string]*corev1.Service, now time.Time) time.Duration {
	name := traffic.UnmatchedName(split.Name)
	service := services[name]
	if service == nil || !traffic.LeavesUnmatched(split) {
		return 0
	}
	// The clock of the API server may be ahead of this one.
	left := min(service.CreationTimestamp.Add(unmatchedTime).Sub(now), unmatchedTime)
	if left <= 0 {
		return 0
	}
	delete(services, name)
	return left
}

// unmatched is what proxies send the requests that match none to; nil when that is no Service
// of Serin's. It is pending while the Service can't be used yet.
func unmatched(split *splitv1.TrafficSplit, known Known) (to *target, pending []traffic.Problem) {
	if !known.Proxied || !traffic.LeavesUnmatched(split) {
		return nil, nil
	}
	name := traffic.UnmatchedName(split.Name)
	service := known.Services[name]
	if _, why := unusable(service); why != "" {
		return nil, []traffic.Problem{traffic.Unresolved(splitv1.ReasonPending,
			"spec.matches: Service %q, which gets the requests that match none, is being made; until then the split is served as before", name)}
	}
	return &target{reference: reference{traffic.FieldDefaultBackend, name}, live: service}, nil
}
