// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

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

// headerCondition writes a condition on a header. The Gateway API leaves to data planes
// whether an expression has to match the whole value or a part, so it is written to
// make no difference. What stands for one value becomes Exact, which all of them have.
func headerCondition(header traffic.Header) (valueMatch, error) {
	if header.Name == "host" {
		return valueMatch{}, errors.New("header host: can't be matched, since routes tell hosts apart by their hostnames; use a route of its own for that host")
	}
	if value := exactValue(header.Regex); value != "" {
		return valueMatch{Type: typeExact, Name: header.Name, Value: value}, nil
	}
	return valueMatch{Type: typeRegex, Name: header.Name, Value: traffic.WholeValue(header.Regex)}, nil
}

// holdsFor tells whether a value meets a condition on a header, as the specification
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
