// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic/expression"
)

func TestCheckExpression(t *testing.T) {
	verify(t, expression.Check, map[string]string{
		`.*Firefox.*`:                            "",
		`^(.*?;)?(type=insider)(;.*)?$`:          "",
		`(^|;\s*)user=[^;]+(;|$)`:                "",
		`^([0-9]{1,3}\.){3}[0-9]{1,3}$`:          "",
		`(?i:b)c`:                                "",
		`(?i)^alice|bob$`:                        "",
		`([a-z]{4}-)*x`:                          "",
		`/api/v[12](/|$)`:                        "",
		`"; return 200; #`:                       "",
		`^(?:a|b)??c{2,}?\b\B\d\D\w\W\S$`:        "",
		`[-a-z_\]\d\t\^-]}]`:                     "",
		`[^-]\/\-\t\[`:                           "",
		strings.Repeat("a", 256):                 "",
		strings.Repeat("a", 257):                 "257 bytes; at most 256",
		``:                                       "is empty",
		"a\nb":                                   "control character",
		"a\x00":                                  "control character",
		"a\u0085":                                "control character",
		"é":                                      "beyond ASCII",
		"[^é]":                                   "beyond ASCII",
		"\xff":                                   "beyond ASCII",
		`a(?P<x>a)`:                              `read "?P<x>a)" differently`,
		`(?<x>a)`:                                `read "?<x>a)" differently`,
		`a(?i)b`:                                 `read "?i)b" differently`,
		`(?m)^a`:                                 `read "?m)^a" differently`,
		`(?s).`:                                  `read "?s)." differently`,
		`(?U)a+`:                                 `read "?U)a+" differently`,
		`(?=a)`:                                  `read "?=a)" differently`,
		`(?!a)`:                                  `read "?!a)" differently`,
		`(?<=a)b`:                                `read "?<=a)b" differently`,
		`(?>a+)`:                                 `read "?>a+)" differently`,
		`(*LIMIT_MATCH=1)`:                       `read "*LIMIT_MATCH=1)" differently`,
		`(*UTF8)a`:                               `read "*UTF8)a" differently`,
		`(a)\1`:                                  `read "\\1" differently`,
		`\Qa`:                                    `read "\\Qa" differently`,
		`\x41`:                                   `read "\\x41" differently`,
		`\Aa`:                                    `read "\\Aa" differently`,
		`a\z`:                                    `read "\\z" differently`,
		`\pL`:                                    `read "\\pL" differently`,
		`\<a`:                                    `read "\\<a" differently`,
		`a\`:                                     `read "\\" differently`,
		`[[:alpha:]]`:                            `read "[:alpha:]]" differently`,
		`[:a:]`:                                  `read "[:a:]" differently`,
		`a[.\].]`:                                `read "[.\\].]" differently`,
		`[=\=]`:                                  `read "[=\\=]" differently`,
		`[.:=][.]`:                               "",
		`[[a]`:                                   `read "[[a]" differently`,
		`[]a]`:                                   `read "[]a]" differently`,
		`[^^]`:                                   `read "[^^]" differently`,
		`[^]a]`:                                  `read "[^]a]" differently`,
		`[\b]`:                                   `read "[\\b]" differently`,
		`[\d-z]`:                                 `read "[\\d-z]" differently`,
		`[a-c-e]`:                                `read "[a-c-e]" differently`,
		`[a&&b]`:                                 `read "[a&&b]" differently`,
		`[a~~b]`:                                 `read "[a~~b]" differently`,
		`[a--b]`:                                 `read "[a--b]" differently`,
		`a{,2}`:                                  `read "{,2}" differently`,
		`a{x`:                                    `read "{x" differently`,
		`^*a`:                                    `read "*a" differently`,
		`a\b+`:                                   `read "+" differently`,
		`a**`:                                    `read "*" differently`,
		`a++`:                                    `read "+" differently`,
		`|*`:                                     `read "*" differently`,
		`a(`:                                     "not a regular expression of RE2",
		`a)`:                                     "not a regular expression of RE2",
		`[z-a]`:                                  "not a regular expression of RE2",
		`a{1001}`:                                "not a regular expression of RE2",
		`(ab){500}`:                              "too large",
		`^(a+)+$`:                                "repeats inside a repetition",
		`(a*b)*`:                                 "repeats inside a repetition",
		`((a+)?b)*`:                              "repeats inside a repetition",
		`(a|b+)*`:                                "repeats inside a repetition",
		`(a{1,30}){1,30}`:                        "repeats inside a repetition",
		`(x+x+)+y`:                               "repeats inside a repetition",
		`(a{2,}){2,}`:                            "repeats inside a repetition",
		`(a+){10}`:                               "repeats inside a repetition",
		`((((((((((a{1,9}){2}){2}){2}){2}))))))`: "repeats inside a repetition",
	})
}

func TestAnExpressionOfAHeaderNeedsACharacter(t *testing.T) {
	verify(t, expression.CheckHeader, map[string]string{
		`x`:    "",
		`.+`:   "",
		`^a$`:  "",
		`.*`:   "matches an empty value",
		`^a?$`: "matches an empty value",
		`$`:    "matches an empty value",
		`(`:    "missing closing )",
	})
}

// verify checks each expression, which is to be refused with an error that has the text
// beside it, or accepted where that is empty.
func verify(t *testing.T, check func(string) error, expressions map[string]string) {
	t.Helper()
	for expr, refused := range expressions {
		t.Run(expr, func(t *testing.T) {
			err := check(expr)
			switch {
			case refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
				t.Errorf("got %v, want an error with %q", err, refused)
			}
		})
	}
}

func TestWholeValue(t *testing.T) {
	for expr, want := range map[string]string{
		`stable`:      `^.*(?:stable).*$`,
		`^stable`:     `^(?:^stable).*$`,
		`stable$`:     `^.*(?:stable$)$`,
		`^stable$`:    `^(?:^stable$)$`,
		`.*Firefox.*`: `^(?:.*Firefox.*)$`,
		`^a|b$`:       `^.*(?:^a|b$).*$`,
		`(.*)a\.*`:    `^.*(?:(.*)a\.*).*$`,
		`.+`:          `^(?:.+)$`,
		`.+a|b.*?`:    `^.*(?:.+a|b.*?).*$`,
		`.*?a.+?`:     `^(?:.*?a.+?)$`,
		`$`:           `^.*(?:$)$`,
	} {
		if got := expression.WholeValue(expr); got != want {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

// FuzzCheckExpression checks that what passes is an expression of RE2 without names,
// back-references or flags but (?i), and that WholeValue matches what it has to.
func FuzzCheckExpression(f *testing.F) {
	for _, expr := range []string{`.*Firefox.*`, `^(a+)+$`, `(?P<x>a)`, `(?i)k{2,3}[^é]`, "a\x00", `a|^b|c$`, `.*a|b.*`, `\.*a\.*`, `(|a)*b`, `[^-\]]`} {
		f.Add(expr, "xstable; a=b")
	}
	f.Fuzz(func(t *testing.T, expr, value string) {
		if expression.Check(expr) != nil {
			return
		}
		re, err := regexp.Compile(expr)
		if err != nil || len(expr) > expression.MaxBytes || strings.ContainsAny(expr, "\x00\n\r") {
			t.Fatalf("%q passed: %v", expr, err)
		}
		if flagged := strings.Contains(strings.TrimPrefix(strings.ReplaceAll(expr, `\(`, ""), "(?i)"), "(?"); flagged && !strings.ContainsAny(expr, "[:") {
			t.Errorf("%q passed with a group that is none", expr)
		}
		for _, name := range re.SubexpNames() {
			if name != "" {
				t.Errorf("%q passed with the group %s", expr, name)
			}
		}
		if !re.MatchString("") && !strings.Contains(value, "\n") {
			whole := expression.WholeValue(expr)
			for _, anchored := range []string{whole, `\A(?:` + whole + `)\z`} {
				if got, want := regexp.MustCompile(anchored).MatchString(value), re.MatchString(value); got != want {
					t.Errorf("%q on %q: %q gives %t, want %t", expr, value, anchored, got, want)
				}
			}
		}
	})
}
