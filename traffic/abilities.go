// SPDX-License-Identifier: Apache-2.0

package traffic

import "slices"

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
	// AbilityRoutes: patch routes that users made.
	AbilityRoutes Ability = "Routes"
	// AbilityPortWeights: share the ports of one Service by different weights.
	AbilityPortWeights Ability = "PortWeights"
	// AbilityPortProtocols: take a port for something else than its Service says.
	AbilityPortProtocols Ability = "PortProtocols"
)

// OfRequests is true for what only ports can have whose requests are split one by one.
func (a Ability) OfRequests() bool {
	return a == AbilityMatch || a == AbilityMirror || a == AbilitySticky
}

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
	if s.PortWeights {
		needs = append(needs, AbilityPortWeights)
	}
	if s.PortProtocols {
		needs = append(needs, AbilityPortProtocols)
	}
	return needs
}

// Lacking refuses the split for each ability that it needs and a router has not.
// Every router's Check begins with it: a match that is ignored would send every
// request to the canary.
func Lacking(split Split, router string, has ...Ability) []Problem {
	var problems []Problem
	for _, need := range split.Needs() {
		if !slices.Contains(has, need) {
			l := lacks[need]
			problems = append(problems, Unsupported("%s: the router %s %s; %s", l.field, router, l.cannot, l.fix))
		}
	}
	return problems
}

// orRemove is how most of what a router lacks is put right.
const orRemove = "choose another router, or remove it"

// lacks say of each ability what a router without it can't do.
var lacks = map[Ability]struct{ field, cannot, fix string }{
	AbilityMatch:         {"spec.matches", "can't limit a split to some requests", "choose another router, or remove spec.matches to split every request"},
	AbilityMirror:        {FieldMirror, "can't mirror requests", orRemove},
	AbilitySticky:        {FieldStickyCookie, "can't have clients come back to their backend", orRemove},
	AbilityRoutes:        {FieldRoutes, "changes no routes", "choose the router of the routes' gateway or mesh, or remove them"},
	AbilityPortWeights:   {FieldPorts, "can't give ports weights of their own", orRemove},
	AbilityPortProtocols: {FieldPorts, "takes what the Service says of its ports", "set appProtocol on the Service's ports, choose another router, or remove protocol"},
}
