// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

const (
	// MaxBytes is the most bytes of a regular expression.
	MaxBytes = 256
	// maxSteps is the most steps of a compiled expression. Istio's proxies refuse all
	// routes of a listener for one expression with 32768 steps of theirs, of which a
	// set of characters takes a dozen, and PCRE refuses one of 64 KiB.
	maxSteps = 1000
	// unbounded stands for a repetition without a bound.
	unbounded = 1000
	// maxNested is how often something that itself repeats may repeat.
	maxNested = 64
)

// The parts of an expression that RE2, PCRE, ECMAScript and Rust read alike, for values
// of printable ASCII, spaces and tabs. What is no letter or digit may follow a
// backslash and then stands for itself; < and > may not, since Rust has \< and \>.
const (
	character  = `\\(?:t|[^0-9A-Za-z<>])`
	class      = `\\[dDwWsS]`
	inSet      = `(?:[^][\\^&~-]|` + character + `)`
	part       = `(?:` + class + `|` + inSet + `(?:-` + inSet + `)?)`
	set        = `\[\^?(?:-|` + part + `)` + part + `*-?\]`
	single     = `(?:[^][\\^$.|?*+(){]|[\].)]|` + character + `|` + class + `|` + set + `)`
	repetition = `(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??`
)

// understood is the longest beginning of an expression that has only such parts. Whether
// its parentheses match is for the parser.
var understood = regexp.MustCompile(`^(?:\(\?i\))?(?:` + single + `(?:` + repetition + `)?|[$^|]|\\[bB]|\((?:\?i?:)?)*`)

// posix is a set that is a set of POSIX to some engines, and an error to PCRE.
var posix = regexp.MustCompile(`\[(?::(?:\\.|[^]])*:|\.(?:\\.|[^]])*\.|=(?:\\.|[^]])*=)\]`)

// Check says why a data plane must not be given a regular expression.
//
// Every data plane gets the text as it is, so the text has to mean the same to all of
// their engines. Some go back and try again: there a repetition of a repetition can
// take a request longer than all others together ((a+)+ against many a's).
func Check(expr string) error {
	switch {
	case expr == "":
		return errors.New("the expression is empty; write .* for any value")
	case len(expr) > MaxBytes:
		return fmt.Errorf("the expression has %d bytes; at most %d", len(expr), MaxBytes)
	case strings.ContainsFunc(expr, unicode.IsControl):
		return errors.New("the expression holds a control character; remove it")
	case strings.ContainsFunc(expr, func(r rune) bool { return r > unicode.MaxASCII }):
		return fmt.Errorf("%q: names a character beyond ASCII, which data planes read differently; write a dot for each of its bytes", expr)
	}
	if rest := notUnderstood(expr); rest != "" {
		return fmt.Errorf(`%q: data planes read %.20q differently; write what is read alike: characters, \ before punctuation, `+
			`. [ ] ( ) (?: ) (?i: ) | ^ $ * + ? {n,m} \d \w \s \b, and (?i) at the start`, expr, rest)
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%q is not a regular expression of RE2: %w", expr, err)
	}
	if err := checkTree(re, 1); err != nil {
		return fmt.Errorf("%q: %w", expr, err)
	}
	if program, err := syntax.Compile(re.Simplify()); err != nil || len(program.Inst) > maxSteps {
		return fmt.Errorf("%q is too large for data planes once its repetitions are written out; repeat less", expr)
	}
	return nil
}

// notUnderstood is an expression from the first part on that is not read alike, or "".
func notUnderstood(expr string) string {
	if at := posix.FindStringIndex(expr); at != nil {
		return expr[at[0]:]
	}
	return expr[len(understood.FindString(expr)):]
}

// checkTree looks for nested repetitions; within is how often the part may be repeated
// by what surrounds it.
func checkTree(re *syntax.Regexp, within int) error {
	times, varies := repeats(re)
	if varies && within > 1 && times*within > maxNested {
		return fmt.Errorf("%q repeats inside a repetition, which can take for ever; repeat only one of the two", re.String())
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

// CheckHeader is Check for the value of a header. A header that is
// empty counts as absent, and only some data planes can match one without the other.
func CheckHeader(expr string) error {
	if err := Check(expr); err != nil {
		return err
	}
	if re, err := regexp.Compile(expr); err != nil || re.MatchString("") {
		return fmt.Errorf("%q matches an empty value, which counts as absent; write it so that it needs a character, such as .+", expr)
	}
	return nil
}

// WholeValue puts an expression that has to match a part of a value into one that then
// matches the whole, for data planes that look at whole values, or may.
func WholeValue(expr string) string {
	before, after := "^.*(?:", ").*$"
	if re, err := syntax.Parse(expr, syntax.Perl); err == nil {
		parts := []*syntax.Regexp{re}
		if re.Op == syntax.OpConcat {
			parts = re.Sub
		}
		// Engines that go back would try a second .* from each character.
		if first := parts[0]; first.Op == syntax.OpBeginText || takesAll(first) {
			before = "^(?:"
		}
		if last := parts[len(parts)-1]; last.Op == syntax.OpEndText || takesAll(last) {
			after = ")$"
		}
	}
	return before + expr + after
}

// takesAll is true for .* and .+, lazy or not.
func takesAll(re *syntax.Regexp) bool {
	return (re.Op == syntax.OpStar || re.Op == syntax.OpPlus) && re.Sub[0].Op == syntax.OpAnyCharNotNL
}
