// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// The requests that match none of a limited split's groups go to the root Service, by which the
// specification means what that selects. While its traffic goes through proxies it leads to
// these, so a router with proxies makes a Service with what the root Service's owner declares.

// unmatchedPrefix begins the names of these Services.
const unmatchedPrefix = "serin-unmatched-"

// unmatchedTime is how long such a Service exists before proxies use it: every node has to know
// its address and its endpoints. Until then they serve what they served before.
const unmatchedTime = 2 * time.Second

// UnmatchedName is the name of the Service for a split's requests that match none.
func UnmatchedName(split string) string {
	name := unmatchedPrefix + split
	if len(name) <= validation.DNS1035LabelMaxLength && !strings.Contains(name, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(split))
	return unmatchedPrefix + hex.EncodeToString(sum[:8])
}

// LeavesUnmatched is true for a split whose requests that match none go to the root Service's
// own pods: it is limited and names no default backend.
func LeavesUnmatched(split *splitv1.TrafficSplit) bool {
	return len(split.Spec.Matches) > 0 && DefaultBackend(split) == ""
}

// Settle leaves the Service for the requests that match none out of services while it is too
// young to be used, and returns how long it still is. Services by name.
func Settle(split *splitv1.TrafficSplit, services map[string]*corev1.Service, now time.Time) time.Duration {
	name := UnmatchedName(split.Name)
	service := services[name]
	if service == nil || !LeavesUnmatched(split) {
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
func unmatched(split *splitv1.TrafficSplit, known Known) (to *target, pending []Problem) {
	if !known.Proxied || !LeavesUnmatched(split) {
		return nil, nil
	}
	name := UnmatchedName(split.Name)
	service := known.Services[name]
	if _, why := unusable(service); why != "" {
		return nil, []Problem{unresolved(splitv1.ReasonPending,
			"spec.matches: Service %q, which gets the requests that match none, is being made; until then the split is served as before", name)}
	}
	return &target{reference: reference{FieldDefaultBackend, name}, live: service}, nil
}
