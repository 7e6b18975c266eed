// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"regexp"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

func TestExpressionsOnHeaders(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
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
		got, err := headerCondition(traffic.Header{Name: "x", Regex: expression})
		if err != nil {
			t.Errorf("%q: %v", expression, err)
			continue
		}
		if text := got.Type + " " + got.Value; text != want {
			t.Errorf("%q: got %s, want %s", expression, text, want)
		}
	}
}

// Whatever is written holds for a value exactly when the expression holds for a part
// of it, whether the data plane looks at the whole value or at parts.
func FuzzExpressionsHoldForTheSameValues(f *testing.F) {
	for _, expression := range []string{"stable", "^a$", "^(a|b)c*$", `\bx\b`, "(?i)Kk", "[^a-c]", "a|^b|c$", "x{2,4}", "(^|;)a(;|$)", `[\t ]x`, "a*?b", "^.$", ".*a|b.*", "(.*)a", `\.*a\.*`} {
		f.Add(expression, "xstable; a=b")
		f.Add(expression, "Kk x;a;")
	}
	f.Fuzz(func(t *testing.T, expression, value string) {
		if traffic.CheckExpression(expression) != nil || regexp.MustCompile(expression).MatchString("") || !headerValue.MatchString(value) {
			return // no expression or no value that passes
		}
		header := traffic.Header{Name: "x", Regex: expression}
		condition, err := headerCondition(header)
		if err != nil {
			return // refused
		}
		want := holdsFor(header, value)
		if condition.Type == typeExact {
			if got := condition.Value == value; got != want {
				t.Errorf("%q on %q: Exact %q gives %t, want %t", expression, value, condition.Value, got, want)
			}
			return
		}
		whole, part := regexp.MustCompile("^(?:"+condition.Value+")$"), regexp.MustCompile(condition.Value)
		if got := whole.MatchString(value); got != want {
			t.Errorf("%q on %q: %q as a whole gives %t, want %t", expression, value, condition.Value, got, want)
		}
		if got := part.MatchString(value); got != want {
			t.Errorf("%q on %q: %q in part gives %t, want %t", expression, value, condition.Value, got, want)
		}
	})
}

// headerValue is what the value of a header can be (RFC 9110), without what is beyond
// ASCII.
var headerValue = regexp.MustCompile(`^([!-~]([\t -~]*[!-~])?)?$`)

func TestExpressionsOnPaths(t *testing.T) {
	t.Parallel()
	paths := []string{"/", "/api", "/api/", "/api/v1", "/apiary", "/x/api", "/b", "/b/c"}
	for _, expression := range []string{"/api(/|$)", "/api/", "/api$", "/(api|b)$", "/(api|b)/", "/api(/.*)?$", "/", ".*", "^/api/v1$", "/[ab]$", "/(?:api/|api/v1/)"} {
		set, err := pathsOf(expression)
		if err != nil {
			t.Errorf("%q: %v", expression, err)
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
			if want := regexp.MustCompile("^(?:" + expression + ")").MatchString(path); got != want {
				t.Errorf("%q holds for %q: %t, want %t (%+v)", expression, path, got, want, set)
			}
		}
	}
}

func FuzzPathsHoldForTheSameRequests(f *testing.F) {
	for _, expression := range []string{"/api(/|$)", "/api/", "/(a|b)/c$", "/a(/.*)?$", "/a|/b", "/a.b$", "(?i)/a$", "/a?b/", "$", "/a//b$"} {
		f.Add(expression, "/api/v1")
		f.Add(expression, "/a")
	}
	f.Fuzz(func(t *testing.T, expression, path string) {
		if traffic.CheckExpression(expression) != nil || checkPath(path) != nil {
			return // no expression or no path that passes
		}
		set, err := pathsOf(expression)
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
		if want := regexp.MustCompile("^(?:" + expression + ")").MatchString(path); got != want {
			t.Errorf("%q holds for %q: %t, want %t (%+v)", expression, path, got, want, set)
		}
	})
}
