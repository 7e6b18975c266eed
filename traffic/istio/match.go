// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/expression"
)

// block is one entry of the match list of an HTTP route: all of its conditions have
// to hold. An empty one holds for every request.
type block = map[string]any

// limit restricts the match list of a route to the requests that one of the sets
// holds. An empty list stands for every request, and so it can't stand for none:
// then no route is to be written.
func limit(blocks []any, sets []traffic.Match) ([]any, error) {
	if len(blocks) == 0 {
		blocks = []any{block{}}
	}
	var out []any
	for _, b := range blocks {
		own, ok := b.(block)
		if !ok {
			return nil, errors.New("a match of the route is not an object")
		}
		for _, set := range sets {
			both, possible, err := intersect(own, set)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
			if possible {
				out = append(out, both)
			}
		}
	}
	return out, nil
}

// intersect adds the conditions of a set to a block. It is not possible when no
// request meets both.
func intersect(own block, set traffic.Match) (both block, possible bool, err error) {
	both = runtime.DeepCopyJSON(own)
	possible = true
	for _, add := range []func(block, traffic.Match) (bool, error){addMethods, addPath, addHeaders} {
		met, err := add(both, set)
		if err != nil {
			return nil, false, err
		}
		possible = possible && met
	}
	return both, possible, nil
}

// addMethods narrows the methods. They are few, so the route's own condition can be
// asked for each of them.
func addMethods(b block, set traffic.Match) (bool, error) {
	if len(set.Methods) == 0 {
		return true, nil
	}
	own, ok := parseStringMatch(b["method"])
	if !ok {
		return false, fmt.Errorf("methods: %w", errBoth)
	}
	var both []string
	for _, m := range set.Methods {
		met, err := own.accepts(m)
		if err != nil {
			return false, fmt.Errorf("methods: %w", err)
		}
		if met {
			both = append(both, m)
		}
	}
	if len(both) == 1 {
		b["method"] = map[string]any{"exact": both[0]}
	} else {
		b["method"] = map[string]any{"regex": strings.Join(both, "|")}
	}
	return len(both) > 0, nil
}

func addPath(b block, set traffic.Match) (bool, error) {
	if set.Path == "" {
		return true, nil
	}
	expr := "(?:" + set.Path + ").*" // Istio matches whole texts
	own, ok := parseStringMatch(b["uri"])
	caseless, _ := b["ignoreUriCase"].(bool)
	switch {
	case ok && own.prefix != nil && strings.HasPrefix(literalPrefix(set.Path), *own.prefix):
		b["uri"] = map[string]any{"regex": expr} // whatever it matches has the prefix
		return true, nil
	case caseless && b["uri"] != nil:
		return false, fmt.Errorf("pathRegex: %w", errBoth)
	}
	met, err := addExpression(b, "uri", expr)
	if err != nil {
		return false, fmt.Errorf("pathRegex: %w", err)
	}
	return met, nil
}

// ignoredHeaders are names that Istio leaves out of a match, which would widen it.
var ignoredHeaders = []string{"uri", "scheme", "method", "authority"}

func addHeaders(b block, set traffic.Match) (bool, error) {
	all := true
	for _, h := range set.Headers {
		in, key := b, "authority" // what the header host is called
		switch {
		case slices.Contains(ignoredHeaders, h.Name):
			return false, fmt.Errorf("headers: Istio ignores conditions on a header called %s; use another header", h.Name)
		case h.Name != "host":
			in, key = within(b, "headers"), h.Name
		}
		met, err := addExpression(in, key, expression.WholeValue(h.Regex))
		if err != nil {
			return false, fmt.Errorf("headers: %s: %w", h.Name, err)
		}
		all = all && met
	}
	return all, nil
}

// within is an object inside of another one, made when it is absent.
func within(b map[string]any, key string) map[string]any {
	inner, ok := b[key].(map[string]any)
	if !ok {
		inner = map[string]any{}
		b[key] = inner
	}
	return inner
}

// addExpression requires that a text matches an expression as well. One that the
// route wants exactly can be tried here; otherwise it may only be asked to be there.
func addExpression(in map[string]any, key, expr string) (bool, error) {
	own, ok := parseStringMatch(in[key])
	switch {
	case !ok || own.prefix != nil || own.regex != nil:
		return false, errBoth
	case own.exact != nil:
		re, err := regexp.Compile(`\A(?:` + expr + `)\z`)
		if err != nil {
			return false, err
		}
		return re.MatchString(*own.exact), nil
	default:
		in[key] = map[string]any{"regex": expr}
		return true, nil
	}
}

// literalPrefix begins whatever an expression matches from its start.
func literalPrefix(expr string) string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return ""
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	if len(parts) > 0 && parts[0].Op == syntax.OpBeginText {
		parts = parts[1:]
	}
	if len(parts) == 0 || parts[0].Op != syntax.OpLiteral || parts[0].Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(parts[0].Rune)
}

// errBoth says why two conditions on one thing can't be one.
var errBoth = errors.New("the route has a condition of its own on it, and Istio takes one")

// stringMatch is Istio's StringMatch: exactly one of its forms.
type stringMatch struct {
	exact, prefix, regex *string
}

func parseStringMatch(value any) (stringMatch, bool) {
	fields, ok := value.(map[string]any)
	if !ok {
		return stringMatch{}, value == nil
	}
	var m stringMatch
	for form, to := range map[string]**string{"exact": &m.exact, "prefix": &m.prefix, "regex": &m.regex} {
		if text, found := fields[form].(string); found {
			*to = &text
		}
	}
	return m, true
}

// accepts evaluates the match of a known text.
func (m stringMatch) accepts(text string) (bool, error) {
	switch {
	case m.exact != nil:
		return text == *m.exact, nil
	case m.prefix != nil:
		return strings.HasPrefix(text, *m.prefix), nil
	case m.regex != nil:
		re, err := regexp.Compile(`\A(?:` + *m.regex + `)\z`)
		if err != nil {
			return false, fmt.Errorf("the route's own expression %q can't be read: %w", *m.regex, err)
		}
		return re.MatchString(text), nil
	default:
		return true, nil // presence alone
	}
}
