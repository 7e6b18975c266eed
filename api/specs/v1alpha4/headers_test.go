// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeadersAreReadAsAMapAndAsAListOfMaps(t *testing.T) {
	want := []Header{{"cookie", "^(.*?;)?(type=insider)(;.*)?$"}, {"user-agent", ".*Firefox.*"}}
	for name, text := range map[string]string{
		"the map of the specification's text":  `{"user-agent": ".*Firefox.*", "cookie": "^(.*?;)?(type=insider)(;.*)?$"}`,
		"the list of the published schema":     `[{"user-agent": ".*Firefox.*"}, {"cookie": "^(.*?;)?(type=insider)(;.*)?$"}]`,
		"a list with several headers in a map": `[{"user-agent": ".*Firefox.*", "cookie": "^(.*?;)?(type=insider)(;.*)?$"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			var m HTTPMatch
			if err := json.Unmarshal([]byte(`{"name": "x", "headers": `+text+`}`), &m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Headers{Items: want}, m.Headers); diff != "" {
				t.Error(diff)
			}
			again, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var m2 HTTPMatch
			if err := json.Unmarshal(again, &m2); err != nil || cmp.Diff(m, m2) != "" {
				t.Errorf("not the same after writing and reading: %s %v", again, err)
			}
		})
	}
}

func TestHeadersThatCannotBeReadAreToldAndDoNotStopTheList(t *testing.T) {
	for text, want := range map[string]string{
		`"firefox"`:                      "must be a map",
		`[1]`:                            "must be a map",
		`[{"a": "1"}, {"a": "2"}]`:       `"a" is named twice`,
		`{"a": {"exact": "not a regex"}`: "", // broken JSON is the decoder's own error
	} {
		var m HTTPMatch
		err := json.Unmarshal([]byte(`{"name": "x", "headers": `+text+`}`), &m)
		if want == "" {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if err != nil || !strings.Contains(m.Headers.Invalid, want) {
			t.Errorf("%s: %v, Invalid %q", text, err, m.Headers.Invalid)
		}
	}
}

func TestNoHeadersAreNotWritten(t *testing.T) {
	text, err := json.Marshal(HTTPMatch{Name: "x", PathRegex: "/api"})
	if err != nil || strings.Contains(string(text), "headers") {
		t.Errorf("%s %v", text, err)
	}
}

func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `null`, `{"a":"b"}`, `[{"a":"b"},{"a":"c"}]`, `[[]]`, `7`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var h Headers
		if json.Unmarshal([]byte(text), &h) != nil || h.Invalid != "" {
			return
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var h2 Headers
		if err := json.Unmarshal(again, &h2); err != nil || cmp.Diff(h, h2) != "" {
			t.Errorf("%s became %s", text, again)
		}
	})
}
