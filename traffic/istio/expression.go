// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// maxProgram bounds the steps of a compiled expression. Istio's proxies refuse all
// routes of a listener when one has an expression of more than 32768 steps, and
// theirs are single bytes.
const maxProgram = 4000

// startsWith is the expression for texts that match from their start, but not
// necessarily to their end: Istio matches whole texts.
func startsWith(expr string) (string, error) { return wrap(expr, "", ".*") }

// holds is the expression for texts of which a part matches. An empty text must not.
func holds(expr string) (string, error) {
	out, err := wrap(expr, ".*", ".*")
	if err != nil {
		return "", err
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", fmt.Errorf("%q is not a regular expression of RE2: %w", expr, err)
	}
	if nullable(re) {
		return ".+", nil // the empty part of any text matches
	}
	if regexp.MustCompile(expr).MatchString("") {
		return "", fmt.Errorf("%q matches an empty value, which counts as absent; write it so that it needs a character", expr)
	}
	return out, nil
}

// wrap puts an expression between two others. Only one that ends within \Q would
// take in what follows it, and then the whole does not parse.
func wrap(expr, before, after string) (string, error) {
	out := before + "(?:" + expr + ")" + after
	re, err := syntax.Parse(out, syntax.Perl)
	if err != nil {
		return "", fmt.Errorf(`%q can't be put into a longer expression (%w); end \Q with \E`, expr, err)
	}
	if strings.ContainsFunc(expr, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", fmt.Errorf("%q holds a character beyond ASCII, which proxies compare byte by byte; write only ASCII", expr)
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return "", fmt.Errorf("%q: %w", expr, err)
	}
	if size(program) > maxProgram {
		return "", fmt.Errorf("%q is too large for Istio's proxies once its repetitions and classes are written out; repeat less", expr)
	}
	return out, nil
}

// size is the steps that a program needs when it compares bytes: up to four for
// each range of characters beyond ASCII.
func size(program *syntax.Prog) int {
	n := 0
	for _, i := range program.Inst {
		n++
		for j := 1; j < len(i.Rune); j += 2 {
			if i.Rune[j] > unicode.MaxASCII {
				n += 4
			}
		}
	}
	return n
}

// nullable is true when an expression matches the empty part of every text.
// Conditions on the place, such as ^, count as not met.
func nullable(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpCapture, syntax.OpPlus:
		return nullable(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || nullable(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !nullable(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, nullable)
	default: // what is left needs a character, or a place
		return false
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
