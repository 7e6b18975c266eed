// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/serin-dev/serin/traffic"
)

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

// maxValue is the most bytes of a header's value, or expression, in a route.
const maxValue = 4096

// headerCondition writes a condition on a header for a data plane whose engine is not
// known: the Gateway API leaves to it which dialect it reads, and whether the
// expression has to match the whole value or a part.
//
// What stands for one value becomes Exact. All else is written anew from what was
// parsed, with what RE2, PCRE and ECMAScript read alike, and so that it matches the
// whole value exactly when it matches a part: ^.*(?:stable).*$.
func headerCondition(header traffic.Header) (valueMatch, error) {
	fail := func(err error) (valueMatch, error) {
		return valueMatch{}, fmt.Errorf("header %s: %q %w", header.Name, header.Regex, err)
	}
	if header.Name == "host" {
		return fail(errors.New("can't be matched, since routes tell hosts apart by their hostnames; use a route of its own for that host"))
	}
	re, err := syntax.Parse(header.Regex, syntax.Perl)
	if err != nil {
		return fail(err)
	}
	if value, literal := literalOf(re); literal && value != "" {
		return valueMatch{Type: typeExact, Name: header.Name, Value: value}, nil
	}
	value, err := portable(re)
	if err != nil {
		return fail(err)
	}
	if len(value) > maxValue {
		return fail(fmt.Errorf("is too long once it is written for every data plane (%d bytes, at most %d); shorten it", len(value), maxValue))
	}
	return valueMatch{Type: typeRegex, Name: header.Name, Value: value}, nil
}

// holdsFor tells whether a value meets a condition on a header, as the specification
// of the match has it: a part of the value matches, and it is not empty.
func holdsFor(header traffic.Header, value string) bool {
	re, err := regexp.Compile(header.Regex)
	return err == nil && value != "" && re.MatchString(value)
}

// literalOf is the one value that an expression of the form ^value$ stands for.
func literalOf(re *syntax.Regexp) (string, bool) {
	parts := partsOf(re)
	if len(parts) < 2 || parts[0].Op != syntax.OpBeginText || parts[len(parts)-1].Op != syntax.OpEndText {
		return "", false
	}
	var value strings.Builder
	for _, p := range parts[1 : len(parts)-1] {
		if p.Op != syntax.OpLiteral || p.Flags&syntax.FoldCase != 0 {
			return "", false
		}
		value.WriteString(string(p.Rune))
	}
	literal := value.String()
	return literal, !strings.ContainsFunc(literal, func(r rune) bool { return r > unicode.MaxASCII }) && strings.TrimSpace(literal) == literal
}

// partsOf are the operations that follow each other, without groups around them.
func partsOf(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return partsOf(re.Sub[0])
	case syntax.OpConcat:
		var parts []*syntax.Regexp
		for _, sub := range re.Sub {
			parts = append(parts, partsOf(sub)...)
		}
		return parts
	default:
		return []*syntax.Regexp{re}
	}
}
