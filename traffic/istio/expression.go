// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

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
