// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/serin-dev/serin/analysis/judge"
)

// busy is a state in which every field is set.
func busy(tb testing.TB) judge.State {
	tb.Helper()
	c := plain()
	for i := range judge.MaxLimits {
		c.Limits = append(c.Limits, judge.MinSuccessRate(.9+float64(i)/100))
	}
	s := judge.State{}.StartStep(epoch)
	for i := range 10 {
		s, _ = c.Next(s, window(i, 33, arm(170, 40), arm(330, 7)))
	}
	return s
}

func TestStateIsStoredExactly(t *testing.T) {
	for name, s := range map[string]judge.State{"zero": {}, "in a step": judge.State{}.StartStep(epoch), "busy": busy(t)} {
		t.Run(name, func(t *testing.T) {
			if back := stored(t, s); back != s {
				t.Errorf("read %+v, want %+v", back, s)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back judge.State
			if err := json.Unmarshal(text, &back); err != nil || back != s {
				t.Errorf("read %+v (%v) from JSON, want %+v", back, err, s)
			}
			t.Logf("%d bytes", len(text))
		})
	}
}

func TestAStateThatCannotBeReadIsAnErrorAndNotABeginning(t *testing.T) {
	good, err := busy(t).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(good), " ")
	with := func(i int, word string) string {
		changed := append([]string(nil), words...)
		changed[i] = word
		return strings.Join(changed, " ")
	}
	for name, text := range map[string]string{
		"empty":                      "",
		"another version":            with(0, "serin-judge/2"),
		"cut short":                  strings.Join(words[:len(words)-1], " "),
		"cut very short":             words[0],
		"too long":                   string(good) + " 0",
		"far too long":               string(good) + strings.Repeat(" 0", 4096),
		"a word instead of a number": with(5, "x"),
		"NaN":                        with(7, "NaN"),
		"infinite":                   with(7, "+Inf"),
		"a negative mass":            with(8, "-1"),
		"more spent than there was":  with(6, "1.1"),
		"an unknown outcome":         with(len(words)-1, "promoted"),
		"a weight of 101":            with(3, "101"),
		"a negative end":             with(2, "-1"),
	} {
		t.Run(name, func(t *testing.T) {
			s := busy(t)
			err := s.UnmarshalText([]byte(text))
			if err == nil || !strings.Contains(err.Error(), "remove it to analyse from the beginning") {
				t.Errorf("error = %v, want one that says what to do", err)
			}
			if s != busy(t) {
				t.Error("the state was changed")
			}
		})
	}
}

func FuzzUnmarshalText(f *testing.F) {
	for _, s := range []judge.State{{}, busy(f)} {
		text, err := s.MarshalText()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s judge.State
		if s.UnmarshalText(text) != nil {
			return
		}
		if back := stored(t, s); back != s {
			t.Errorf("read %+v, then %+v", s, back)
		}
		checkSound(t, s)
	})
}
