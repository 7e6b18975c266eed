// SPDX-License-Identifier: Apache-2.0

package args

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var values = map[string]string{"service": "web", "odd": `a/../b?c#"d" {{args.service}}`, "dots": "..", "empty": ""}

func TestArgumentsAreFilledInOnce(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"no argument { }":              "no argument { }",
		"{{args.service}}-x":           "web-x",
		"{{ args.service }}":           "web",
		"{{args.odd}}":                 `a/../b?c#"d" {{args.service}}`,
		"{{args.service}}{{args.odd}}": `weba/../b?c#"d" {{args.service}}`,
	} {
		if got, err := Expand(text, values, Verbatim); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"{{args.absent}}":    "there is no argument absent; declare it in args",
		"{{service}}":        "what is between {{ and }} is not args.NAME",
		"{{args.service":     "what is between {{ and }} is not args.NAME",
		"{{{{args.service}}": "what is between {{ and }} is not args.NAME",
	} {
		if got, err := Expand(text, values, Verbatim); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b-1", "a"}, Names("{{args.a}} {{ args.b-1 }} {{args.a}} {{x}}")); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyNamesGoIntoQueriesThatAreNotParsed(t *testing.T) {
	for value, fine := range map[string]bool{
		"web": true, "web-canary": true, "v1.2_x": true, "9": true, "_": true,
		"": false, "-x": false, "x-": false, "a b": false, "a'b": false, `a"`: false, "a)": false, "a;b": false, "a*": false, "ä": false,
		"a--b": false, "a..b": false, "a\nb": false, "a,b": false, "{a": false, "$a": false,
	} {
		if _, err := Plain(value); (err == nil) != fine {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestArgumentsOfAURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://a.example/x":                                 "http://a.example/x",
		"http://a.example/{{args.service}}/ok":               "http://a.example/web/ok",
		"http://a.example/{{args.odd}}":                      "http://a.example/a%2F..%2Fb%3Fc%23%22d%22%20%7B%7Bargs.service%7D%7D",
		"http://a.example?q={{args.odd}}":                    "http://a.example?q=a%2F..%2Fb%3Fc%23%22d%22+%7B%7Bargs.service%7D%7D",
		"http://a.example/{{args.service}}?q={{args.empty}}": "http://a.example/web?q=",
	} {
		if got, err := URL(text, values); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"http://{{args.service}}/x":         "not in the host",
		"http://a.example:{{args.service}}": "not in the host",
		"{{args.service}}://a.example/":     "not in the host",
		"{{args.service}}":                  "not in the host",
		"http://a.example/{{args.dots}}/x":  "argument dots: is empty or only dots",
		"http://a.example/{{args.empty}}/x": "argument empty: is empty or only dots",
		"http://a.example/?{{args.absent}}": "there is no argument absent",
		"http://a.example/{{args.absent}}":  "there is no argument absent",
	} {
		if got, err := URL(text, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
}

func FuzzAnArgumentStaysInItsPlaceOfAURL(f *testing.F) {
	for _, v := range []string{"web", "/", "..", "?a=b", "#", "%2e%2e", "\x00", "ä", "&a=b", "@host", "\\", "//"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := URL("https://a.example/x/{{args.v}}/y?q={{args.v}}&z=1", map[string]string{"v": value})
		if err != nil {
			return
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(u.EscapedPath(), "/")
		if u.Host != "a.example" || u.Fragment != "" || len(parts) != 4 || parts[3] != "y" || u.Query().Get("q") != value || u.Query().Get("z") != "1" {
			t.Errorf("%q became %s", value, got)
		}
	})
}
