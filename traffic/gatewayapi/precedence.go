// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// order says which of two matches gets the requests that are in both.
type order int

const (
	// unknown: the data plane may do either.
	unknown order = iota
	// first and second of the two gets them.
	first
	second
)

// position is a match with its place among the new rules, and with the rule that it
// comes from.
type position struct {
	match
	place, rule int
}

// precedence is the order of the Gateway API: of HTTPRoutes, an exact path before a
// prefix, the longer prefix, a match with a method, the one with more headers, the
// one with more query parameters; of GRPCRoutes, the longer service, the longer
// method, the one with more headers; and then the earlier rule. Where an expression
// on the path, or on the call, stands is up to the data plane, unless both have the
// same one.
func precedence(a, b position) order {
	if a.grpc() && (a.callType == typeRegex || b.callType == typeRegex) && !sameCall(a.match, b.match) ||
		!a.grpc() && (a.path.Type == typeRegex || b.path.Type == typeRegex) && a.path != b.path {
		return unknown
	}
	switch compared := slices.Compare(a.rank(), b.rank()); {
	case compared > 0:
		return first
	case compared < 0:
		return second
	case a.place <= b.place:
		return first
	default:
		return second
	}
}

func sameCall(a, b match) bool {
	return a.callType == b.callType && a.service == b.service && a.call == b.call
}

// exactPath is more than the length of any prefix.
const exactPath = 1 << 20

func (m match) rank() []int {
	if m.grpc() {
		return []int{len(m.service), len(m.call), len(m.headers)}
	}
	path := len(m.path.Value)
	if m.path.Type == typeExact {
		path = exactPath
	}
	return []int{path, min(len(m.method), 1), len(m.headers), len(m.params)}
}

// apart is true when certainly no request is in both matches.
func apart(a, b match) bool {
	if differ(a.method, b.method) || valuesApart(a.params, b.params) || valuesApart(a.headers, b.headers) {
		return true
	}
	if a.grpc() {
		exact := a.callType == typeExact && b.callType == typeExact
		return exact && (differ(a.service, b.service) || differ(a.call, b.call))
	}
	return pathsApart(a.path, b.path)
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

func pathsApart(a, b pathMatch) bool {
	switch {
	case a.Type == typeRegex || b.Type == typeRegex:
		return false
	case a.Type == typeExact:
		return !b.holds(a.Value)
	case b.Type == typeExact:
		return !a.holds(b.Value)
	default:
		return !under(a.element(), b.element()) && !under(b.element(), a.element())
	}
}

// valuesApart is true when a header, or query parameter, would have to have two
// values.
func valuesApart(a, b []valueMatch) bool {
	for _, x := range a {
		for _, y := range b {
			if strings.EqualFold(x.Name, y.Name) && x.Type == typeExact && y.Type == typeExact && x.Value != y.Value {
				return true
			}
		}
	}
	return false
}

// placed is a narrowed match at its place in the new rules.
type placed struct {
	position
	// source is the index of the route's match that was narrowed, and set that of the
	// split's set of requests.
	source, set int
	excluded    bool
}

// checkPrecedence finds a narrowed match that would get requests which another rule of
// the route has now, or which do not belong to the split.
//
// A condition more gives a match a higher place. So a request that is in a match m of
// another rule, and went there because m is before the match that was narrowed, may
// meet the narrowed one first. That does no harm only if m was narrowed in the same
// way and this copy is before it.
func checkPrecedence(originals []position, copies []placed) error {
	var problems []error
	for _, c := range copies {
		for i, m := range originals {
			if takesFrom(c, i, originals, copies) {
				problems = append(problems, fmt.Errorf("spec.rules[%d]: with the conditions of spec.matches added, would get requests that spec.rules[%d] gets now; "+
					"give that rule a longer path, or the root Service a route of its own", c.rule, m.rule))
			}
		}
		for _, other := range copies {
			if c.excluded && !other.excluded && c.set != other.set && overshadows(c, other) {
				problems = append(problems, fmt.Errorf("spec.rules[%d]: the path %q is in one of the split's matches and left out of another, which routes can't express; "+
					"write (/|$) in place of / at the end of pathRegex", c.rule, c.path.Value))
			}
		}
	}
	return errors.Join(unique(problems)...)
}

// takesFrom is true when a copy may get requests that the i-th original has to get.
func takesFrom(c placed, i int, originals []position, copies []placed) bool {
	m := originals[i]
	if m.rule == c.rule {
		return false // the same backends, either way
	}
	if precedence(originals[c.source], m) == first || apart(m.match, c.match) || precedence(m, c.position) == first {
		return false
	}
	return !slices.ContainsFunc(copies, func(other placed) bool {
		return other.source == i && other.set == c.set && other.excluded == c.excluded &&
			holdsBoth(other.match, m.match, c.match) && precedence(other.position, c.position) == first
	})
}

// holdsBoth is true when a copy of m holds every request that is in m and in c, which
// was made with the same set of the split. Only the method and the path of the copy
// can be narrower than that.
func holdsBoth(other, m, c match) bool {
	if other.method != "" && other.method != m.method && other.method != c.method {
		return false
	}
	return other.path == m.path || other.path == c.path ||
		other.path.Type == typePrefix && (under(m.path.element(), other.path.element()) || under(c.path.element(), other.path.element()))
}

// overshadows is true when a copy of what does not belong to a set may get requests
// that do belong to another.
func overshadows(excluded, other placed) bool {
	return !apart(excluded.match, other.match) && precedence(other.position, excluded.position) != first
}

// unique leaves out errors that say the same.
func unique(problems []error) []error {
	slices.SortStableFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return slices.CompactFunc(problems, func(a, b error) bool { return a.Error() == b.Error() })
}
