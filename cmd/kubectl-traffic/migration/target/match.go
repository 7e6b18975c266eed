// SPDX-License-Identifier: Apache-2.0

package target

import (
	"regexp"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/traffic/expression"
)

// Expression is the regular expression for what a text has to be: exact, or what it begins
// or ends with, or an expression for all of it. Headers match anywhere in their value, and
// paths from their start.
func Expression(f source.Field) string {
	how := f.Keys()
	if len(how) != 1 {
		f.Fail("needs exactly one of exact, prefix, suffix and regex")
		return ""
	}
	value := f.At(how[0]).Text()
	var text string
	switch how[0] {
	case "exact":
		text = "^" + regexp.QuoteMeta(value) + "$"
	case "prefix":
		text = "^" + regexp.QuoteMeta(value)
	case "suffix":
		text = regexp.QuoteMeta(value) + "$"
	case "regex":
		text = whole(value)
	default:
		f.Fail("needs exactly one of exact, prefix, suffix and regex")
		return ""
	}
	if err := expression.Check(text); err != nil {
		f.At(how[0]).Fail("can't be a condition of an HTTPRouteGroup: %v", err)
	}
	return text
}

// whole is an expression that matches a text as a whole, and not only a part of it.
func whole(regex string) string {
	if len(regex) > 1 && regex[0] == '^' && regex[len(regex)-1] == '$' {
		return regex
	}
	return "^(?:" + regex + ")$"
}
