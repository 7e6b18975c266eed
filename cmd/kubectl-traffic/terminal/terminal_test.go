// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

func TestCleanLeavesOutWhatControlsATerminal(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"text stays", "größer, 大\tx\n", "größer, 大\tx\n"},
		{"colours", "\x1b[31mred\x1b[0m", "[31mred[0m"},
		{"the title of the window", "\x1b]0;title\a", "]0;title"},
		{"going back over a line", "safe\rgone\b", "safegone"},
		{"control sequences of 8 bits", "\u009b31m", "31m"},
		{"the direction of text", "a\u202eb\u2066c", "abc"},
		{"bytes that are no text", "a\x9bb\xff", "a\ufffdb\ufffd"},
		{"other ends of lines", "a\u2028b\vc\fd", "abcd"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if _, err := NewClean(&out).Write([]byte(test.text)); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}

func TestCleanPutsCharactersTogetherThatWereWrittenInParts(t *testing.T) {
	var out bytes.Buffer
	c := NewClean(&out)
	for _, b := range []byte("größer\u009b") {
		if n, err := c.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if out.String() != "größer" {
		t.Errorf("got %q", out.String())
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2Jb", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		var out bytes.Buffer
		c := NewClean(&out)
		at = min(max(at, 0), len(text))
		for _, part := range []string{text[:at], text[at:]} {
			if _, err := c.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%q holds a control character at %d", out.String(), i)
		}
	})
}

func TestAPictureTakesThePlaceOfTheOneBefore(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, size: func() (int, int, error) { return 10, 4, nil }}
	for _, picture := range []string{"one\ntwo\n", "a line that is too long\n\x1b[2J\n3\n4\n5\n"} {
		if err := s.Show(picture, ""); err != nil {
			t.Fatal(err)
		}
	}
	want := "\x1b[Jone\ntwo\n" + "\x1b[2A\r\x1b[Ja line th…\n[2J\n3\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestPicturesFollowEachOtherWhereTheOutputIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	for _, picture := range []string{"one\n", "two\x1b[J\n"} {
		if err := s.Show(picture, ""); err != nil {
			t.Fatal(err)
		}
	}
	if want := "one\ntwo[J\n"; s.Terminal() || out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestTheFootIsShownWhateverThePictureTakes(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, size: func() (int, int, error) { return 10, 4, nil }}
	if err := s.Show("1\n2\n3\n4\n", "no answer\n"); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[J1\n2\nno answer\n"; out.String() != want || s.lines != 3 {
		t.Errorf("got %q, %d lines, want %q", out.String(), s.lines, want)
	}
}
