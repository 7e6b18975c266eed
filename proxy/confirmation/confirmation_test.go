// SPDX-License-Identifier: Apache-2.0

package confirmation

import (
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnAnswerIsReadAsItWasWritten(t *testing.T) {
	for name, served := range map[string]Served{
		"a generation":            {Pod: "uid-1", Generation: 3, Configuration: "0123456789abcdef"},
		"nothing yet":             {Pod: "uid-1"},
		"why a newer one is not":  {Pod: "uid-1", Generation: 2, Configuration: "0123456789abcdef", Message: "nginx: [emerg] \"x\""},
		"a pod of another script": {Pod: "uid-1", Message: "é"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			Write(w, served)
			got, err := Parse(w.Body.Bytes(), "uid-1")
			if err != nil || got != served {
				t.Errorf("got %+v and %v, want %+v", got, err, served)
			}
		})
	}
}

func TestAnAnswerCountsForThePodThatGaveIt(t *testing.T) {
	w := httptest.NewRecorder()
	Write(w, Served{Pod: "stale", Generation: 3, Configuration: "x"})
	if got, err := Parse(w.Body.Bytes(), "fresh"); err == nil {
		t.Errorf("the answer of another pod counts: %+v", got)
	}
	for _, body := range []string{"", "ok", "{}", "[]", `{"generation":3}`, `{"pod":"","generation":3}`} {
		for _, pod := range []string{"fresh", ""} {
			if got, err := Parse([]byte(body), "fresh"); err == nil {
				t.Errorf("%q counts for pod %q: %+v", body, pod, got)
			}
		}
	}
	if _, err := Parse([]byte(`{"generation":3}`), ""); err == nil {
		t.Error("an answer without a pod counts for a pod without a UID")
	}
}

func TestAMessageFitsTheStatus(t *testing.T) {
	for _, message := range []string{strings.Repeat("é", 600), "x" + strings.Repeat("é", 600), "\xff" + strings.Repeat("x", 2000)} {
		w := httptest.NewRecorder()
		Write(w, Served{Pod: "uid-1", Message: message})
		got, err := Parse(w.Body.Bytes(), "uid-1")
		if err != nil || len(got.Message) > maxMessage || len(got.Message) < maxMessage-2 || !utf8.ValidString(got.Message) {
			t.Errorf("%d bytes, %v", len(got.Message), err)
		}
		if w.Body.Len() > MaxBytes {
			t.Errorf("an answer of %d bytes", w.Body.Len())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"pod":"uid-1","generation":3,"configuration":"x","message":"y"}`))
	f.Add([]byte(`{"pod":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		served, err := Parse(body, "uid-1")
		if err == nil && (served.Pod != "uid-1" || len(served.Message) > maxMessage) {
			t.Errorf("%q gives %+v", body, served)
		}
	})
}
