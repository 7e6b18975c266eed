// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Clean is a writer that leaves out what would control a terminal: every control
// character but the end of a line and the tabulator, and what turns the direction of
// text. Bytes that are no text become U+FFFD.
type Clean struct {
	out io.Writer
	// rest is the beginning of a character whose end was not written yet.
	rest []byte
}

// NewClean makes a Clean that writes to out.
func NewClean(out io.Writer) *Clean { return &Clean{out: out} }

// Write takes all of p, or returns an error of the writer below.
func (c *Clean) Write(p []byte) (int, error) {
	text := slices.Concat(c.rest, p)
	clean := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		if allowed(r) {
			clean = utf8.AppendRune(clean, r)
		}
		text = text[size:]
	}
	c.rest = append([]byte(nil), text...)
	if _, err := c.out.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// allowed is whether a character only shows something.
func allowed(r rune) bool {
	return r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && r != '\u2028' && r != '\u2029'
}
