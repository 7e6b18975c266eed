// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Control sequences of every terminal of the last decades (ECMA-48).
const (
	upTo      = "\x1b[%dA\r" // up by lines, to the first column
	eraseDown = "\x1b[J"     // from the cursor to the end of the screen
)

// Screen shows pictures of several lines, each in the place of the one before. Where
// the output is no terminal, each is written after the other.
type Screen struct {
	out io.Writer
	// size is that of the terminal; nil when the output is none.
	size func() (width, height int, err error)
	// lines that the last picture takes.
	lines int
}

// NewScreen makes a screen of an output.
func NewScreen(out io.Writer) *Screen {
	s := &Screen{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.size = func() (int, int, error) { return term.GetSize(int(file.Fd())) }
	}
	return s
}

// Terminal is whether pictures replace each other.
func (s *Screen) Terminal() bool { return s.size != nil }

// Show shows a picture with a foot below it. On a terminal the picture is cut to what
// fits above the foot, because lines that have left the screen can't be drawn again.
func (s *Screen) Show(picture, foot string) error {
	picture, err := cleaned(picture)
	if err != nil {
		return err
	}
	if foot, err = cleaned(foot); err != nil {
		return err
	}
	if !s.Terminal() {
		_, err := io.WriteString(s.out, picture+foot)
		return err
	}
	width, height, err := s.size()
	if err != nil {
		return fmt.Errorf("ask the terminal for its size: %w", err)
	}
	foot = fit(foot, width, height)
	fitting := fit(picture, width, max(height-strings.Count(foot, "\n"), 1)) + foot
	start := eraseDown
	if s.lines > 0 {
		start = fmt.Sprintf(upTo, s.lines) + eraseDown
	}
	s.lines = strings.Count(fitting, "\n")
	_, err = io.WriteString(s.out, start+fitting)
	return err
}

func cleaned(text string) (string, error) {
	var clean bytes.Buffer
	_, err := NewClean(&clean).Write([]byte(text))
	return clean.String(), err
}

// fit cuts a picture to lines that a terminal shows without wrapping or scrolling: one
// less than its height, as the cursor stands below them.
func fit(text string, width, height int) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if height > 0 && len(lines) > height-1 {
		lines = lines[:height-1]
	}
	var b strings.Builder
	for _, line := range lines {
		if width > 1 && utf8.RuneCountInString(line) > width {
			line = string([]rune(line)[:width-1]) + "…"
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}
