// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/serin-dev/serin/traffic"
)

var (
	errNotASCII  = errors.New("names a character beyond ASCII, which data planes read differently; write a dot for it")
	errMultiLine = errors.New("sets the flag m, but a value has one line only; remove the flag")
	errEmpty     = errors.New("holds for an empty value too, which counts as no value; write it so that it needs a character, such as .+")
)

// portable writes an expression that holds for a whole value if and only if a part of
// the value matches re and the value is not empty.
func portable(re *syntax.Regexp) (string, error) {
	parts := partsOf(re)
	for len(parts) > 0 && traffic.MatchesAnything(parts[0]) {
		parts = parts[1:]
	}
	for len(parts) > 0 && traffic.MatchesAnything(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return "^.+$", nil
	}
	if compiled, err := regexp.Compile(re.String()); err != nil || compiled.MatchString("") {
		return "", errEmpty
	}
	before, after := "^.*", ".*$"
	if parts[0].Op == syntax.OpBeginText {
		before, parts = "^", parts[1:]
	}
	if n := len(parts); n > 0 && parts[n-1].Op == syntax.OpEndText {
		after, parts = "$", parts[:n-1]
	}
	w := &expressionWriter{}
	if err := w.write(&syntax.Regexp{Op: syntax.OpConcat, Sub: parts}); err != nil {
		return "", err
	}
	return before + w.out.String() + after, nil
}

// expressionWriter writes the part of the languages of expressions that is common to
// all engines.
type expressionWriter struct{ out strings.Builder }

// plainOps are the operations that are written alike whatever they hold. A value has
// no line breaks, so that the dot needs no flag.
var plainOps = map[syntax.Op]string{
	syntax.OpEmptyMatch:     "",
	syntax.OpAnyCharNotNL:   ".",
	syntax.OpAnyChar:        ".",
	syntax.OpBeginText:      "^",
	syntax.OpEndText:        "$",
	syntax.OpWordBoundary:   `\b`,
	syntax.OpNoWordBoundary: `\B`,
}

func (w *expressionWriter) write(re *syntax.Regexp) error {
	if plain, ok := plainOps[re.Op]; ok {
		w.out.WriteString(plain)
		return nil
	}
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine:
		return errMultiLine
	case syntax.OpNoMatch:
		return errors.New("matches nothing; remove the match")
	case syntax.OpLiteral:
		return w.literal(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return w.class(re.Rune)
	case syntax.OpCapture, syntax.OpConcat:
		return w.group(re.Sub, "")
	case syntax.OpAlternate:
		return w.group(re.Sub, "|")
	default:
		return w.repeat(re)
	}
}

// group writes parts that belong together.
func (w *expressionWriter) group(parts []*syntax.Regexp, separator string) error {
	if len(parts) == 1 && traffic.IsOneThing(parts[0]) {
		return w.write(parts[0])
	}
	w.out.WriteString("(?:")
	for i, part := range parts {
		if i > 0 {
			w.out.WriteString(separator)
		}
		if err := w.write(part); err != nil {
			return err
		}
	}
	w.out.WriteString(")")
	return nil
}

// repeat writes a repetition. Greedy or not makes no difference to whether there is a
// match.
func (w *expressionWriter) repeat(re *syntax.Regexp) error {
	if len(re.Sub) != 1 {
		return fmt.Errorf("has an operation that is not known (%s)", re.Op)
	}
	if err := w.group(re.Sub, ""); err != nil {
		return err
	}
	switch re.Op {
	case syntax.OpStar:
		w.out.WriteString("*")
	case syntax.OpPlus:
		w.out.WriteString("+")
	case syntax.OpQuest:
		w.out.WriteString("?")
	case syntax.OpRepeat:
		w.out.WriteString(bounds(re.Min, re.Max))
	default:
		return fmt.Errorf("has an operation that is not known (%s)", re.Op)
	}
	return nil
}

func bounds(least, most int) string {
	switch most {
	case least:
		return fmt.Sprintf("{%d}", least)
	case -1:
		return fmt.Sprintf("{%d,}", least)
	default:
		return fmt.Sprintf("{%d,%d}", least, most)
	}
}

func (w *expressionWriter) literal(runes []rune, fold bool) error {
	for _, r := range runes {
		lower, upper := unicode.ToLower(r), unicode.ToUpper(r)
		switch {
		case r > unicode.MaxASCII || !unicode.IsPrint(r):
			return errNotASCII
		case fold && lower != upper:
			fmt.Fprintf(&w.out, "[%c%c]", upper, lower)
		default:
			w.out.WriteString(character(r))
		}
	}
	return nil
}

// character writes one printable character so that it stands for itself.
func character(r rune) string {
	if strings.ContainsRune(`\^$.|?*+()[]{}-`, r) {
		return `\` + string(r)
	}
	return string(r)
}

// The first and the last character that a set is written with. Others of ASCII are
// control characters, which no value holds but for the tab.
const firstPrintable, lastPrintable = ' ', '~'

// class writes a set of characters, given as pairs of first and last ones. One that
// holds what is beyond ASCII is written as what it does not hold.
func (w *expressionWriter) class(pairs []rune) error {
	negated := len(pairs) > 0 && pairs[len(pairs)-1] == unicode.MaxRune
	if negated {
		pairs = complement(pairs)
	}
	var set strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := writeRange(&set, pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	switch {
	case set.Len() > 0 && negated:
		w.out.WriteString("[^" + set.String() + "]")
	case set.Len() > 0:
		w.out.WriteString("[" + set.String() + "]")
	case negated:
		w.out.WriteString(".")
	default:
		return errors.New("has a set of characters that no value holds; remove it")
	}
	return nil
}

// writeRange writes one range of a set.
func writeRange(set *strings.Builder, from, to rune) error {
	if folded(from) && from == to {
		return nil
	}
	if to > unicode.MaxASCII {
		return errNotASCII
	}
	if from <= '\t' && '\t' <= to {
		set.WriteString(`\t`)
	}
	from, to = max(from, firstPrintable), min(to, lastPrintable)
	if from > to {
		return nil
	}
	set.WriteString(character(from))
	if from != to {
		set.WriteString("-" + character(to))
	}
	return nil
}

// folded are the characters beyond ASCII that (?i) takes for a letter of ASCII: those
// of s and of k.
func folded(r rune) bool { return slices.Contains([]rune{'\u017f', '\u212a'}, r) }

// complement is the pairs of all characters that a set does not hold.
func complement(pairs []rune) []rune {
	var rest []rune
	next := rune(0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] > next {
			rest = append(rest, next, pairs[i]-1)
		}
		next = pairs[i+1] + 1
	}
	return rest
}
