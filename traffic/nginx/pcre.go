// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/serin-dev/serin/traffic"
)

const (
	// pcreOptions of every expression: the dot stops at \n, and nginx may take so many
	// steps, a few milliseconds. Beyond them the request does not match.
	pcreOptions = "(*LF)(*LIMIT_MATCH=100000)"
	// maxPattern is the most bytes of a translated expression. nginx reads words of
	// 4096 bytes, in which each backslash is doubled.
	maxPattern = 1900
)

// pcre translates a checked RE2 expression into one of PCRE, which is nginx's. It
// is written anew from what was parsed, so no text of the expression reaches the
// configuration: what stands for itself is a letter or a digit, or a hexadecimal
// number, and groups capture nothing.
//
// nginx matches bytes, so one that names characters beyond ASCII is refused. The
// dot and negated classes take each byte of such a character.
func pcre(expr string, where anchoring) (string, error) {
	if err := traffic.CheckExpression(expr); err != nil {
		return "", err
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", err
	}
	w := &pcreWriter{}
	if err := w.write(trim(re, where)); err != nil {
		return "", fmt.Errorf("%q: %w", expr, err)
	}
	if w.out.Len() > maxPattern {
		return "", fmt.Errorf("%q is too long for nginx once it is translated; shorten it", expr)
	}
	return w.out.String(), nil
}

// anchoring is where an expression has to match.
type anchoring int

const (
	// anywhere: in any part of the value.
	anywhere anchoring = iota
	// atStart: from the start of the value.
	atStart
)

// trim leaves out what an expression may begin or end with and that matches
// anything, such as the dots of ".*Firefox.*": whether there is a match does not
// depend on it, and an engine that goes back would try it from each place.
func trim(re *syntax.Regexp, where anchoring) *syntax.Regexp {
	if re.Op != syntax.OpConcat {
		return re
	}
	subs := re.Sub
	for where == anywhere && len(subs) > 0 && traffic.MatchesAnything(subs[0]) {
		subs = subs[1:]
	}
	for len(subs) > 0 && traffic.MatchesAnything(subs[len(subs)-1]) {
		subs = subs[:len(subs)-1]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: subs}
}

type pcreWriter struct{ out strings.Builder }

var (
	errNotASCII  = errors.New("names a character beyond ASCII, and nginx matches bytes; write a dot for each of its bytes")
	errMultiLine = errors.New("sets the flag m, but a value has one line only; remove the flag")
)

// plainOps are the operations that are written alike whatever they hold.
var plainOps = map[syntax.Op]string{
	syntax.OpNoMatch:        `(?!)`,
	syntax.OpEmptyMatch:     ``,
	syntax.OpAnyCharNotNL:   `.`,
	syntax.OpAnyChar:        `[\x00-\xff]`,
	syntax.OpBeginText:      `\A`,
	syntax.OpEndText:        `\z`,
	syntax.OpWordBoundary:   `\b`,
	syntax.OpNoWordBoundary: `\B`,
}

func (w *pcreWriter) write(re *syntax.Regexp) error {
	if text, plain := plainOps[re.Op]; plain {
		w.out.WriteString(text)
		return nil
	}
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine:
		return errMultiLine
	case syntax.OpLiteral:
		return w.literal(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return w.class(re.Rune)
	case syntax.OpCapture:
		return w.group(re.Sub, "")
	case syntax.OpConcat:
		return w.group(re.Sub, "")
	case syntax.OpAlternate:
		return w.group(re.Sub, "|")
	default:
		return w.repeat(re)
	}
}

// group writes parts that belong together.
func (w *pcreWriter) group(parts []*syntax.Regexp, separator string) error {
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

func (w *pcreWriter) repeat(re *syntax.Regexp) error {
	write := func() error { return w.group(re.Sub, "") }
	if traffic.IsOneThing(re.Sub[0]) {
		write = func() error { return w.write(re.Sub[0]) } // engines are quick with what is simple
	}
	if err := write(); err != nil {
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
		fmt.Fprintf(&w.out, "{%d,", re.Min)
		if re.Max >= 0 {
			fmt.Fprintf(&w.out, "%d", re.Max)
		}
		w.out.WriteString("}")
	default:
		return fmt.Errorf("has an operation that is not known (%s)", re.Op)
	}
	if re.Flags&syntax.NonGreedy != 0 {
		w.out.WriteString("?")
	}
	return nil
}

func (w *pcreWriter) literal(runes []rune, fold bool) error {
	for _, r := range runes {
		lower, upper := unicode.ToLower(r), unicode.ToUpper(r)
		switch {
		case r > unicode.MaxASCII:
			return errNotASCII
		case fold && lower != upper:
			fmt.Fprintf(&w.out, "[%c%c]", upper, lower) // letters of ASCII
		default:
			w.out.WriteString(character(r))
		}
	}
	return nil
}

// character writes one character so that it stands for itself.
func character(r rune) string {
	if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
		return string(r)
	}
	return fmt.Sprintf(`\x%02x`, r)
}

// class writes a set of characters, given as pairs of first and last ones.
func (w *pcreWriter) class(pairs []rune) error {
	rest, err := beyondASCII(pairs)
	if err != nil {
		return err
	}
	var set strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		first, last := pairs[i], min(pairs[i+1], unicode.MaxASCII)
		switch {
		case first > last:
		case first == last:
			set.WriteString(character(first))
		default:
			set.WriteString(character(first) + "-" + character(last))
		}
	}
	if rest {
		set.WriteString(`\x80-\xff`)
	}
	if set.Len() == 0 {
		w.out.WriteString(plainOps[syntax.OpNoMatch])
		return nil
	}
	w.out.WriteString("[" + set.String() + "]")
	return nil
}

// folded are the characters beyond ASCII that (?i) takes for a letter of ASCII.
const (
	longS  = '\u017f' // of s
	kelvin = '\u212a' // of k
)

// beyondASCII tells whether a set holds every character beyond ASCII, or none. It
// fails for one that holds some. What (?i) adds does not count.
func beyondASCII(pairs []rune) (bool, error) {
	const all = unicode.MaxRune - unicode.MaxASCII
	n := rune(0)
	for i := 0; i+1 < len(pairs); i += 2 {
		first, last := max(pairs[i], unicode.MaxASCII+1), pairs[i+1]
		if first > last {
			continue
		}
		n += last - first + 1
		for _, r := range []rune{longS, kelvin} {
			if first <= r && r <= last {
				n--
			}
		}
	}
	switch n {
	case 0:
		return false, nil
	case all - 2:
		return true, nil
	default:
		return false, errNotASCII
	}
}
