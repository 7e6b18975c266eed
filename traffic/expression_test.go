// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

func TestCheckExpression(t *testing.T) {
	for expr, refused := range map[string]string{
		`.*Firefox.*`:                            "",
		`^(.*?;)?(type=insider)(;.*)?$`:          "",
		`^([0-9]{1,3}\.){3}[0-9]{1,3}$`:          "",
		`(?i)^alice|bob$`:                        "",
		`([a-z]{4}-)*x`:                          "",
		`/api/v[12](/|$)`:                        "",
		`"; return 200; #`:                       "",
		strings.Repeat("a", 256):                 "",
		strings.Repeat("a", 257):                 "257 bytes; at most 256",
		``:                                       "is empty",
		"a\nb":                                   "control character",
		"a\x00":                                  "control character",
		"a\u0085":                                "control character",
		`(?P<x>a)`:                               "has a name",
		`(?<x>a)`:                                "has a name",
		`(a)\1`:                                  "not a regular expression of RE2",
		`(?=a)`:                                  "not a regular expression of RE2",
		`(?!a)`:                                  "not a regular expression of RE2",
		`(?<=a)b`:                                "not a regular expression of RE2",
		`(?>a+)`:                                 "not a regular expression of RE2",
		`(*LIMIT_MATCH=1)`:                       "not a regular expression of RE2",
		`(*UTF8)a`:                               "not a regular expression of RE2",
		`a(`:                                     "not a regular expression of RE2",
		"\xff":                                   "not a regular expression of RE2",
		`a**`:                                    "not a regular expression of RE2",
		`^(a+)+$`:                                "repeats inside of a repetition",
		`(a*b)*`:                                 "repeats inside of a repetition",
		`((a+)?b)*`:                              "repeats inside of a repetition",
		`(a|b+)*`:                                "repeats inside of a repetition",
		`(a{1,30}){1,30}`:                        "repeats inside of a repetition",
		`(x+x+)+y`:                               "repeats inside of a repetition",
		`(a{2,}){2,}`:                            "repeats inside of a repetition",
		`(a+){10}`:                               "repeats inside of a repetition",
		`((((((((((a{1,9}){2}){2}){2}){2}))))))`: "repeats inside of a repetition",
	} {
		t.Run(expr, func(t *testing.T) {
			err := traffic.CheckExpression(expr)
			switch {
			case refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
				t.Errorf("got %v, want an error with %q", err, refused)
			}
		})
	}
}

// FuzzCheckExpression checks that what passes is an expression of RE2 without
// names, and that nothing makes the check panic or take long.
func FuzzCheckExpression(f *testing.F) {
	for _, expr := range []string{`.*Firefox.*`, `^(a+)+$`, `(?P<x>a)`, `(?i)k{2,3}[^é]`, "a\x00"} {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if traffic.CheckExpression(expr) != nil {
			return
		}
		re, err := regexp.Compile(expr)
		if err != nil || len(expr) > traffic.MaxExpression || strings.ContainsAny(expr, "\x00\n\r") {
			t.Fatalf("%q passed: %v", expr, err)
		}
		for _, name := range re.SubexpNames() {
			if name != "" {
				t.Errorf("%q passed with the group %s", expr, name)
			}
		}
	})
}
