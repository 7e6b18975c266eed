// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

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
		s, _ = c.Next(s, window(i, 33, variant(170, 40), variant(330, 7)))
	}
	return s
}

func TestStateIsStoredExactly(t *testing.T) {
	for name, s := range map[string]judge.State{"zero": {}, "in a step": judge.State{}.StartStep(epoch), "busy": busy(t)} {
		t.Run(name, func(t *testing.T) {
			if back := stored(t, s); back != s {
				t.Error("another state was read")
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back judge.State
			if err := json.Unmarshal(text, &back); err != nil || back != s {
				t.Errorf("another state was read from JSON (error %v)", err)
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
	version, data, _ := strings.Cut(string(good), " ")
	for name, text := range map[string]string{
		"empty":               "",
		"an earlier version":  "serin-judge/1 0 0 0",
		"a later version":     "serin-judge/4 " + data,
		"cut short":           string(good[:len(good)-4]),
		"cut to the version":  version,
		"longer than written": string(good) + "AAAA",
		"far too long":        string(good) + strings.Repeat("A", 4096),
		"not base64":          version + " ?" + data[1:],
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
		_, data, _ := strings.Cut(string(text), " ")
		binary, err := base64.RawURLEncoding.DecodeString(data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(binary)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRead(t, data)
		checkRead(t, []byte("serin-judge/3 "+base64.RawURLEncoding.EncodeToString(data)))
	})
}

// checkRead checks that what can be read is read the same again and does not
// poison what follows.
func checkRead(t *testing.T, text []byte) {
	t.Helper()
	var s judge.State
	if s.UnmarshalText(text) != nil {
		return
	}
	if back := stored(t, s); back != s {
		t.Error("another state was read the second time")
	}
	w := window(0, 50, variant(1000, 10), variant(1000, 10))
	if end := s.End(); !end.IsZero() && end.Before(time.Unix(1<<32, 0)) {
		w.Start, w.End = end, end.Add(5*time.Second)
	}
	limited := judge.Defaults()
	limited.Limits = []judge.Limit{judge.MinSuccessRate(.9), judge.MinSuccessRate(.99)}
	for _, c := range []judge.Config{judge.Defaults(), limited} {
		next, r := c.Next(s, w)
		checkNumbers(t, r)
		stored(t, next)
	}
}

// FuzzDispersion reads what may be stored of stable's history, and judges with it.
func FuzzDispersion(f *testing.F) {
	flow := newClustered(1, 1000, 10, 4)
	flow.stable = always(.01)
	for _, d := range []judge.Dispersion{{}, flow.history(time.Minute)} {
		text, err := d.MarshalText()
		if err != nil {
			f.Fatal(err)
		}
		version, data, _ := strings.Cut(string(text), " ")
		binary, err := base64.RawURLEncoding.DecodeString(data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(version, binary)
	}
	f.Fuzz(func(t *testing.T, version string, binary []byte) {
		var d, back judge.Dispersion
		if d.UnmarshalText([]byte(version+" "+base64.RawURLEncoding.EncodeToString(binary))) != nil {
			return
		}
		text, err := d.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := back.UnmarshalText(text); err != nil || back != d {
			t.Errorf("read %+v the first time, %+v the second (error %v)", d, back, err)
		}
		c := plain()
		c.Dispersion = d
		var s judge.State
		for i := range 5 {
			var r judge.Result
			s, r = c.Next(s, window(i, 50, variant(1000, 20), variant(1000, 10)))
			checkNumbers(t, r)
			stored(t, s)
		}
	})
}
