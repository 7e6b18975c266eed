// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Ability is something that a split may need and not every router has.
type Ability string

// The abilities.
const (
	// AbilityMatch: limit a split to the requests that match.
	AbilityMatch Ability = "Match"
	// AbilityMirror: copy requests to one more backend.
	AbilityMirror Ability = "Mirror"
	// AbilitySticky: have clients come back to the backend that they were given first.
	AbilitySticky Ability = "Sticky"
	// AbilityRoutes: change routes of somebody else.
	AbilityRoutes Ability = "Routes"
)

// Needs are the abilities without which a router can't serve the split.
func (s Split) Needs() []Ability {
	var needs []Ability
	if s.Limited {
		needs = append(needs, AbilityMatch)
	}
	if s.Mirror != nil {
		needs = append(needs, AbilityMirror)
	}
	if len(s.Routes) > 0 {
		needs = append(needs, AbilityRoutes)
	}
	if s.Sticky != nil {
		needs = append(needs, AbilitySticky)
	}
	return needs
}

// Lacking refuses the split for each ability that it needs and a router has not.
// Every router's Check begins with it: a match that is ignored would send the
// canary to everybody.
func Lacking(split Split, router string, has ...Ability) []Problem {
	var problems []Problem
	for _, need := range split.Needs() {
		if slices.Contains(has, need) {
			continue
		}
		switch need {
		case AbilityMatch:
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"spec.matches: the router %s can't limit a split to some requests; choose another router, or remove spec.matches to split every request", router))
		case AbilityMirror:
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"%s: the router %s can't mirror requests; choose another router, or remove the annotation", fieldMirror, router))
		case AbilitySticky:
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"%s: the router %s can't have clients come back to their backend; choose another router, or remove the annotation", fieldSticky, router))
		case AbilityRoutes:
			problems = append(problems, refuse(splitv1.ReasonUnsupported,
				"%s: the router %s changes no routes; choose the router of the routes' gateway or mesh, or remove the annotation", fieldRoutes, router))
		}
	}
	return problems
}
