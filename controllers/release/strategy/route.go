// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Route is what share of which requests goes to the canary.
type Route struct {
	// Weight in percent; with Matches, of the requests that match.
	Weight int32
	// Matches name HTTPRouteGroups, sorted; empty means all requests.
	Matches []string
	// Mirror is the percentage of stable's requests that the canary gets too.
	Mirror int32
}

// Equal reports whether two routes are the same in all.
func (r Route) Equal(other Route) bool {
	return r.Weight == other.Weight && r.Mirror == other.Mirror && slices.Equal(r.Matches, other.Matches)
}

// SameRequests reports whether the two routes send the same requests to the
// canary, whatever they copy.
func (r Route) SameRequests(other Route) bool {
	return r.Weight == other.Weight && slices.Equal(r.Matches, other.Matches)
}

// Exposure orders routes by how many users meet the canary. Those who match are
// always fewer than a percentage of all.
func (r Route) Exposure() int32 {
	if len(r.Matches) > 0 {
		return 0
	}
	return r.Weight
}

// Below reports whether fewer users meet the canary than by another route.
func (r Route) Below(other Route) bool {
	return r.Exposure() < other.Exposure() || r.Weight == 0 && other.Weight > 0
}

func (r Route) String() string {
	s := strconv.Itoa(int(r.Weight))
	if len(r.Matches) > 0 {
		s += " of those that match " + strings.Join(r.Matches, ", ")
	}
	if r.Mirror > 0 {
		s += fmt.Sprintf(", mirroring %d %% of stable's requests", r.Mirror)
	}
	return s
}

// Share is what a route means to users.
func (r Route) Share() string {
	if len(r.Matches) > 0 {
		return fmt.Sprintf("%d %% of the requests that match %s", r.Weight, strings.Join(r.Matches, ", "))
	}
	return fmt.Sprintf("%d %% of the traffic", r.Weight)
}
