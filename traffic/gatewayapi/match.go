// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/expression"
)

// match is one of the matches of a rule, in a form in which two can be compared.
type match struct {
	// fields of the match in the route.
	fields map[string]any
	// kind of the route.
	kind string
	// path of an HTTPRoute's match.
	path pathMatch
	// method of an HTTPRoute's match; "" for any.
	method string
	// service and call of a GRPCRoute's match, "" for any; callType is how they are
	// compared.
	callType, service, call string
	headers, params         []valueMatch
}

// matchFields are the fields of a match that are known. Another one would be a
// condition that can't be compared.
var matchFields = map[string][]string{
	kindHTTPRoute: {fieldPath, fieldMethod, fieldHeaders, "queryParams"},
	kindGRPCRoute: {fieldMethod, fieldHeaders},
}

// matchesOf are the matches of a rule: one that holds for everything when it has none.
func matchesOf(kind string, rule map[string]any) ([]match, error) {
	objects := objectsOf(rule[fieldMatches])
	if len(objects) == 0 {
		objects = []map[string]any{{}}
	}
	matches := make([]match, 0, len(objects))
	for i, fields := range objects {
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(matchFields[kind], field) {
				return nil, fmt.Errorf("matches[%d].%s: is a condition that this version of Serin does not know, so it can't be combined with spec.matches; remove one of the two", i, field)
			}
		}
		matches = append(matches, readMatch(kind, fields))
	}
	return matches, nil
}

func readMatch(kind string, fields map[string]any) match {
	m := match{fields: fields, kind: kind, headers: valuesOf(fields[fieldHeaders]), params: valuesOf(fields["queryParams"])}
	if m.grpc() {
		method, _ := fields[fieldMethod].(map[string]any)
		m.callType, m.service, m.call = cmp.Or(text(method, fieldType), typeExact), text(method, "service"), text(method, fieldMethod)
		return m
	}
	m.path, m.method = anyPath, text(fields, fieldMethod)
	if path, ok := fields[fieldPath].(map[string]any); ok {
		m.path = pathMatch{Type: cmp.Or(text(path, fieldType), typePrefix), Value: cmp.Or(text(path, fieldValue), "/")}
	}
	return m
}

func (m match) grpc() bool { return m.kind == kindGRPCRoute }

func valuesOf(list any) []valueMatch {
	objects := objectsOf(list)
	values := make([]valueMatch, 0, len(objects))
	for _, o := range objects {
		values = append(values, valueMatch{Type: cmp.Or(text(o, fieldType), typeExact), Name: text(o, fieldName), Value: text(o, fieldValue)})
	}
	return values
}

// narrowed is a match together with conditions of a split.
type narrowed struct {
	match
	// from is the index of the match among those of its rule, and set that of the
	// split's set of requests.
	from, set int
	// excluded is true for requests that are in the match and, although a condition of
	// the split's can't be said without them, do not belong to the split.
	excluded bool
}

// narrowing is one set of requests of the split in the form of the Gateway API.
type narrowing struct {
	source  traffic.Match
	paths   pathSet
	headers []valueMatch
	// set is the index of the source.
	set int
}

// maxHeaders is the most conditions on headers of a match.
const maxHeaders = 16

// narrowingsOf translates the sets of requests of a split.
func narrowingsOf(matches []traffic.Match) ([]narrowing, error) {
	out := make([]narrowing, 0, len(matches))
	var problems []error
	for i, m := range matches {
		n := narrowing{source: m, set: i}
		var err error
		if n.paths, err = pathsOf(m.Path); err != nil {
			problems = append(problems, fmt.Errorf("spec.matches: %s: %w", m, err))
		}
		for _, h := range m.Headers {
			condition, err := headerCondition(h)
			if err != nil {
				problems = append(problems, fmt.Errorf("spec.matches: %s: %w", m, err))
			}
			n.headers = append(n.headers, condition)
		}
		out = append(out, n)
	}
	return out, errors.Join(problems...)
}

// and is the requests that are in a match of a route and in a set of the split.
func (n narrowing) and(m match) ([]narrowed, error) {
	base, possible, err := n.narrowHeaders(m)
	if err != nil || !possible {
		return nil, err
	}
	if m.grpc() {
		return n.narrowCall(base)
	}
	var out []narrowed
	methods := n.source.Methods
	if len(methods) == 0 {
		methods = []string{""}
	}
	for _, method := range methods {
		if m.method != "" && method != "" && m.method != method {
			continue
		}
		with := base
		with.method = cmp.Or(m.method, method)
		paths, err := n.narrowPath(with)
		if err != nil {
			return nil, err
		}
		out = append(out, paths...)
	}
	return out, nil
}

// narrowHeaders adds the conditions on headers. It is not possible for a request to
// meet both when a header would have to have two values.
func (n narrowing) narrowHeaders(m match) (out match, possible bool, err error) {
	out = m
	out.headers = slices.Clone(m.headers)
	for i, condition := range n.headers {
		at := slices.IndexFunc(m.headers, func(h valueMatch) bool { return strings.EqualFold(h.Name, condition.Name) })
		switch {
		case at < 0:
			out.headers = append(out.headers, condition)
		case m.headers[at].Type == typeExact:
			if !holdsFor(n.source.Headers[i], m.headers[at].Value) {
				return out, false, nil
			}
		case m.headers[at].Value == condition.Value && condition.Type == typeRegex:
		default:
			return out, false, fmt.Errorf("has an expression for the header %s, and so has %s; a match can hold one: remove it from one of the two", condition.Name, n.source)
		}
	}
	if len(out.headers) > maxHeaders {
		return out, false, fmt.Errorf("would have %d conditions on headers with those of %s; the Gateway API allows %d", len(out.headers), n.source, maxHeaders)
	}
	return out, true, nil
}

// narrowCall narrows a match of a GRPCRoute. Every call is a POST.
func (n narrowing) narrowCall(m match) ([]narrowed, error) {
	if n.source.Path != "" {
		return nil, fmt.Errorf("is of a GRPCRoute, and %s has a pathRegex; match by headers", n.source)
	}
	if len(n.source.Methods) > 0 && !slices.Contains(n.source.Methods, "POST") {
		return nil, nil
	}
	return []narrowed{{match: m, set: n.set}}, nil
}

// narrowPath narrows the path of a match.
func (n narrowing) narrowPath(m match) ([]narrowed, error) {
	whole := []narrowed{{match: m, set: n.set}}
	switch {
	case slices.Contains(n.paths.conditions, anyPath):
		return whole, nil
	case m.path.Type == typePrefix:
		return n.narrowPrefix(m), nil
	case m.path.Type != typeExact:
		return nil, fmt.Errorf("has an expression for the path, and so has %s; a match can hold one: remove it from one of the two", n.source)
	case n.paths.expression.MatchString(m.path.Value):
		return whole, nil
	}
	return nil, nil
}

// narrowPrefix narrows a match for the tree of a path.
func (n narrowing) narrowPrefix(m match) []narrowed {
	var out []narrowed
	add := func(path pathMatch, excluded bool) {
		with := m
		with.path = path
		out = append(out, narrowed{match: with, set: n.set, excluded: excluded})
	}
	for _, c := range n.paths.conditions {
		if path, both := m.path.inBoth(c); both {
			add(path, false)
		}
	}
	for _, path := range n.paths.but {
		if m.path.holds(path) {
			add(pathMatch{Type: typeExact, Value: path}, true)
		}
	}
	return out
}

// write is the match in the form of the route. What nothing was added to stays as it
// is.
func (m match) write() map[string]any {
	fields := copyOf(m.fields)
	before := readMatch(m.kind, m.fields)
	if !m.grpc() && (fields[fieldPath] == nil || m.path != before.path) {
		fields[fieldPath] = map[string]any{fieldType: m.path.Type, fieldValue: m.path.Value}
	}
	if !m.grpc() && m.method != before.method {
		fields[fieldMethod] = m.method
	}
	headers := objectsOf(fields[fieldHeaders])
	for _, h := range m.headers[len(before.headers):] {
		headers = append(headers, map[string]any{fieldType: h.Type, fieldName: h.Name, fieldValue: h.Value})
	}
	if len(headers) > 0 {
		fields[fieldHeaders] = listOf(headers)
	}
	return fields
}

// valueMatch is a condition on the value of a header or of a query parameter.
type valueMatch struct {
	Type, Name, Value string
}

// Types of conditions.
const (
	typeExact  = "Exact"
	typeRegex  = "RegularExpression"
	typePrefix = "PathPrefix"
)

// headerCondition writes a condition on a header. The Gateway API leaves to data planes
// whether an expression has to match the whole value or a part, so it is written to
// make no difference. What stands for one value becomes Exact, which all of them have.
func headerCondition(header traffic.Header) (valueMatch, error) {
	if header.Name == "host" {
		return valueMatch{}, errors.New("header host: can't be matched, since routes match hosts by their hostnames; use a route of its own for that host")
	}
	if value := exactValue(header.Regex); value != "" {
		return valueMatch{Type: typeExact, Name: header.Name, Value: value}, nil
	}
	return valueMatch{Type: typeRegex, Name: header.Name, Value: expression.WholeValue(header.Regex)}, nil
}

// holdsFor reports whether a value meets a condition on a header, as the specification
// of the match has it: a part of the value matches, and it is not empty.
func holdsFor(header traffic.Header, value string) bool {
	re, err := regexp.Compile(header.Regex)
	return err == nil && value != "" && re.MatchString(value)
}

// exactValue is the one value that an expression of the form ^value$ stands for, or "".
func exactValue(expr string) string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || len(re.Sub) != 3 {
		return ""
	}
	value := re.Sub[1]
	if re.Sub[0].Op != syntax.OpBeginText || re.Sub[2].Op != syntax.OpEndText || value.Op != syntax.OpLiteral || value.Flags&syntax.FoldCase != 0 {
		return ""
	}
	text := string(value.Rune)
	if strings.TrimSpace(text) != text {
		return ""
	}
	return text
}
