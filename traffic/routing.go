// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// routing is what a split asks of its router beyond the specification, checked.
type routing struct {
	routes    []Route
	mirror    *Mirror
	sticky    *Sticky
	overrides overrides
}

// readRouting reads the routing of a split. With problems, what is right of it is there.
func readRouting(split *splitv1.TrafficSplit) (r routing, problems []Problem) {
	declared, err := splitv1.RoutingOf(split)
	if err != nil {
		return r, []Problem{refuse(splitv1.ReasonInvalid, "%s", err.Error())}
	}
	note := func(err error) {
		if err != nil {
			problems = append(problems, refuse(splitv1.ReasonInvalid, "%s", err.Error()))
		}
	}
	r.routes, err = routesOf(declared)
	note(err)
	r.mirror, err = mirrorOf(declared)
	note(err)
	r.overrides, err = overridesOf(split, declared)
	note(err)
	r.sticky, err = stickyOf(declared)
	note(err)
	return r, problems
}

// RouterName is the router that a split asks for, fallback when it names none. A split
// whose routing can't be read stays with the router that leads it.
func RouterName(split *splitv1.TrafficSplit, fallback string) string {
	routing, err := splitv1.RoutingOf(split)
	if err != nil {
		return cmp.Or(split.Status.Router, fallback)
	}
	return cmp.Or(routing.Router, fallback)
}

// DefaultBackend is the Service that a split names for the requests that are not split;
// "" when it names none, or can't be read.
func DefaultBackend(split *splitv1.TrafficSplit) string {
	routing, _ := splitv1.RoutingOf(split)
	return routing.DefaultBackend
}
