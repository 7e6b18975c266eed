// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"regexp"
	"testing"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/expression"
)

func TestExpressionsOnHeaders(t *testing.T) {
	t.Parallel()
	for regex, want := range map[string]string{
		"^insider$":     "Exact insider",
		`^a\.b$`:        "Exact a.b",
		"^ a$":          "RegularExpression ^(?:^ a$)$",
		"(?i)^insider$": "RegularExpression ^(?:(?i)^insider$)$",
		"^(a|bc)$":      "RegularExpression ^(?:^(a|bc)$)$",
		"stable":        "RegularExpression ^.*(?:stable).*$",
		"insider$":      "RegularExpression ^.*(?:insider$)$",
		".*Firefox.*":   "RegularExpression ^(?:.*Firefox.*)$",
		"^a|b$":         "RegularExpression ^.*(?:^a|b$).*$",
		".+":            "RegularExpression ^(?:.+)$",
	} {
		got, err := headerCondition(traffic.Header{Name: "x", Regex: regex})
		if err != nil {
			t.Errorf("%q: %v", regex, err)
			continue
		}
		if text := got.Type + " " + got.Value; text != want {
			t.Errorf("%q: got %s, want %s", regex, text, want)
		}
	}
}

// Whatever is written holds for a value exactly when the expression holds for a part
// of it, whether the data plane looks at the whole value or at parts.
func FuzzExpressionsHoldForTheSameValues(f *testing.F) {
	for _, regex := range []string{"stable", "^a$", "^(a|b)c*$", `\bx\b`, "(?i)Kk", "[^a-c]", "a|^b|c$", "x{2,4}", "(^|;)a(;|$)", `[\t ]x`, "a*?b", "^.$", ".*a|b.*", "(.*)a", `\.*a\.*`} {
		f.Add(regex, "xstable; a=b")
		f.Add(regex, "Kk x;a;")
	}
	f.Fuzz(func(t *testing.T, regex, value string) {
		if expression.Check(regex) != nil || regexp.MustCompile(regex).MatchString("") || !headerValue.MatchString(value) {
			return // no expression or no value that passes
		}
		header := traffic.Header{Name: "x", Regex: regex}
		condition, err := headerCondition(header)
		if err != nil {
			return // refused
		}
		want := holdsFor(header, value)
		if condition.Type == typeExact {
			if got := condition.Value == value; got != want {
				t.Errorf("%q on %q: Exact %q gives %t, want %t", regex, value, condition.Value, got, want)
			}
			return
		}
		whole, part := regexp.MustCompile("^(?:"+condition.Value+")$"), regexp.MustCompile(condition.Value)
		if got := whole.MatchString(value); got != want {
			t.Errorf("%q on %q: %q as a whole gives %t, want %t", regex, value, condition.Value, got, want)
		}
		if got := part.MatchString(value); got != want {
			t.Errorf("%q on %q: %q in part gives %t, want %t", regex, value, condition.Value, got, want)
		}
	})
}

// headerValue is what the value of a header can be (RFC 9110), without what is beyond
// ASCII.
var headerValue = regexp.MustCompile(`^([!-~]([\t -~]*[!-~])?)?$`)

func TestExpressionsOnPaths(t *testing.T) {
	t.Parallel()
	paths := []string{"/", "/api", "/api/", "/api/v1", "/apiary", "/x/api", "/b", "/b/c"}
	for _, regex := range []string{"/api(/|$)", "/api/", "/api$", "/(api|b)$", "/(api|b)/", "/api(/.*)?$", "/", ".*", "^/api/v1$", "/[ab]$", "/(?:api/|api/v1/)"} {
		set, err := pathsOf(regex)
		if err != nil {
			t.Errorf("%q: %v", regex, err)
			continue
		}
		for _, path := range paths {
			got := false
			for _, c := range set.conditions {
				got = got || c.holds(path)
			}
			for _, but := range set.but {
				got = got && but != path
			}
			if want := regexp.MustCompile("^(?:" + regex + ")").MatchString(path); got != want {
				t.Errorf("%q holds for %q: %t, want %t (%+v)", regex, path, got, want, set)
			}
		}
	}
}

func FuzzPathsHoldForTheSameRequests(f *testing.F) {
	for _, regex := range []string{"/api(/|$)", "/api/", "/(a|b)/c$", "/a(/.*)?$", "/a|/b", "/a.b$", "(?i)/a$", "/a?b/", "$", "/a//b$"} {
		f.Add(regex, "/api/v1")
		f.Add(regex, "/a")
	}
	f.Fuzz(func(t *testing.T, regex, path string) {
		if expression.Check(regex) != nil || checkPath(path) != nil {
			return // no expression or no path that passes
		}
		set, err := pathsOf(regex)
		if err != nil {
			return // refused
		}
		got := false
		for _, c := range set.conditions {
			got = got || c.holds(path)
		}
		for _, but := range set.but {
			got = got && but != path
		}
		if want := regexp.MustCompile("^(?:" + regex + ")").MatchString(path); got != want {
			t.Errorf("%q holds for %q: %t, want %t (%+v)", regex, path, got, want, set)
		}
	})
}
