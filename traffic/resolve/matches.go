// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/expression"
)

// resolveMatches merges the groups of a split. What can't be understood refuses
// the split: to leave a condition out would widen a match.
func resolveMatches(split *splitv1.TrafficSplit, groups map[string]*specsv1.HTTPRouteGroup) ([]traffic.Match, []traffic.Problem) {
	var matches []traffic.Match
	var problems []traffic.Problem
	for i, ref := range split.Spec.Matches {
		if slices.ContainsFunc(split.Spec.Matches[:i], func(m splitv1.Match) bool { return m.Name == ref.Name }) {
			continue
		}
		group := groups[ref.Name]
		if group == nil {
			problems = append(problems, traffic.Unresolved(splitv1.ReasonGroupNotFound,
				"spec.matches: HTTPRouteGroup %q does not exist, and no request matches it; create it", ref.Name))
			continue
		}
		for _, m := range group.Spec.Matches {
			match, err := makeMatch(ref.Name, m)
			if err != nil {
				problems = append(problems, traffic.Refuse(splitv1.ReasonInvalid, "spec.matches: %s: %s", match, err))
				continue
			}
			matches = append(matches, match)
		}
	}
	return matches, problems
}

// makeMatch checks one set of requests.
func makeMatch(group string, in specsv1.HTTPMatch) (traffic.Match, error) {
	out := traffic.Match{Group: group, Name: in.Name, Path: in.PathRegex}
	if len(in.Methods) == 0 && in.PathRegex == "" && len(in.Headers.Items) == 0 && in.Headers.Invalid == "" {
		return out, errors.New(`has no condition; write methods: ["*"] when it is meant to hold every request`)
	}
	var err error
	if out.Methods, err = makeMethods(in.Methods); err != nil {
		return out, err
	}
	if in.PathRegex != "" {
		if err := expression.Check(in.PathRegex); err != nil {
			return out, fmt.Errorf("pathRegex: %w", err)
		}
	}
	out.Headers, err = makeHeaders(in.Headers)
	return out, err
}

// httpMethods are the methods that a set can name.
var httpMethods = []specsv1.HTTPMethod{"GET", "HEAD", "PUT", "POST", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// makeMethods returns the methods in order, none when any will do.
func makeMethods(in []specsv1.HTTPMethod) ([]string, error) {
	var out []string
	for _, m := range in {
		if m == "*" {
			return nil, nil
		}
		if !slices.Contains(httpMethods, m) {
			return nil, fmt.Errorf(`methods: %.20q is not a method; write one of GET, HEAD, PUT, POST, DELETE, CONNECT, OPTIONS, TRACE and PATCH, or "*"`, string(m))
		}
		out = append(out, string(m))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// headerName is what the name of a header can be (RFC 9110 token).
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$")

func makeHeaders(in specsv1.Headers) ([]traffic.Header, error) {
	if in.Invalid != "" {
		return nil, fmt.Errorf("%.200s", in.Invalid)
	}
	var out []traffic.Header
	for _, h := range in.Items {
		name := strings.ToLower(h.Name)
		if !headerName.MatchString(name) {
			return nil, fmt.Errorf("headers: %.50q is not the name of a header", h.Name)
		}
		if slices.ContainsFunc(out, func(o traffic.Header) bool { return o.Name == name }) {
			return nil, fmt.Errorf("headers: %q is named twice; keep one of them", name)
		}
		regex := h.Regex
		if regex == ".*" {
			regex = ".+" // any value, which an empty one is not
		}
		if err := expression.CheckHeader(regex); err != nil {
			return nil, fmt.Errorf("headers: %s: %w", name, err)
		}
		out = append(out, traffic.Header{Name: name, Regex: regex})
	}
	return out, nil
}
