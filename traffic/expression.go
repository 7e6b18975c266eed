// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
)

const (
	// MaxExpression is the most bytes of a regular expression.
	MaxExpression = 256
	// unbounded stands for a repetition without a bound.
	unbounded = 1000
	// maxNested is how often something that itself repeats may repeat.
	maxNested = 64
)

// CheckExpression says why a data plane must not be given a regular expression.
//
// Data planes match with engines that are not RE2: some go back and try again, so
// a repetition of a repetition can take a request longer than all others together
// ((a+)+ against many a's), and in some a named group overwrites a variable of
// another tenant. What RE2 does not know, such as back-references and look-around,
// does not parse.
func CheckExpression(expr string) error {
	switch {
	case expr == "":
		return errors.New("the expression is empty; write .* for any value")
	case len(expr) > MaxExpression:
		return fmt.Errorf("the expression has %d bytes; at most %d", len(expr), MaxExpression)
	case strings.ContainsFunc(expr, unicode.IsControl):
		return errors.New("the expression holds a control character; remove it")
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%q is not a regular expression of RE2: %w", expr, err)
	}
	if err := checkTree(re, 1); err != nil {
		return fmt.Errorf("%q: %w", expr, err)
	}
	return nil
}

// checkTree looks for named groups and nested repetitions; within is how often the
// part may be repeated by what surrounds it.
func checkTree(re *syntax.Regexp, within int) error {
	if re.Op == syntax.OpCapture && re.Name != "" {
		return fmt.Errorf("the group %q has a name; write (...) instead", re.Name)
	}
	times, varies := repeats(re)
	if varies && within > 1 && times*within > maxNested {
		return fmt.Errorf("%q repeats inside of a repetition, which can take for ever; repeat only one of the two", re.String())
	}
	for _, sub := range re.Sub {
		if err := checkTree(sub, min(within*times, unbounded)); err != nil {
			return err
		}
	}
	return nil
}

// repeats is how often an operation may repeat its operand, and whether it may be
// more than once or not.
func repeats(re *syntax.Regexp) (times int, varies bool) {
	switch {
	case re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0:
		return unbounded, true
	case re.Op == syntax.OpRepeat:
		return max(re.Max, 1), re.Max != re.Min && re.Max > 1
	default:
		return 1, false
	}
}

// MatchesAnything is true for .* in all of its forms.
func MatchesAnything(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar && (re.Sub[0].Op == syntax.OpAnyCharNotNL || re.Sub[0].Op == syntax.OpAnyChar)
}

// IsOneThing is true for what routers write as one thing, a single character or a
// group, so that it can be repeated as it is.
func IsOneThing(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar, syntax.OpCharClass, syntax.OpCapture, syntax.OpConcat, syntax.OpAlternate:
		return true
	case syntax.OpLiteral:
		return len(re.Rune) == 1
	default:
		return false
	}
}
