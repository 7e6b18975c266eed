// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

func TestPCRE(t *testing.T) {
	for expr, want := range map[string]string{
		`abc`:                          `abc`,
		`.*Firefox.*`:                  `(?:Firefox)`,
		`.*`:                           `.*`,
		`(.*)x`:                        `(?:(?:.*)x)`,
		`a.*b`:                         `(?:a.*b)`,
		`^a$`:                          `(?:\Aa\z)`,
		`a|bc+`:                        `(?:a|(?:bc+))`,
		`(?i)ab1`:                      `[Aa][Bb]1`,
		`[a-c_]`:                       `[\x5fa-c]`,
		`[^a]`:                         `[\x00-\x60b-\x7f\x80-\xff]`,
		`(?i)[k]`:                      `[Kk]`,
		`\d{2,3}?`:                     `[0-9]{2,3}?`,
		`\bx\B`:                        `(?:\bx\B)`,
		`"; \$\{x\} #'`:                `\x22\x3b\x20\x24\x7bx\x7d\x20\x23\x27`,
		`\Qa+b\E`:                      `a\x2bb`,
		`(?s).`:                        `[\x00-\xff]`,
		`^(.*?;)?(type=insider)(;.*)?`: `(?:\A(?:(?:.*?\x3b))?(?:type\x3dinsider)(?:(?:\x3b.*))?)`,
		`[^\x00-\x{10FFFF}]`:           `(?!)`,
	} {
		got, err := pcre(expr, anywhere)
		if err != nil || got != want {
			t.Errorf("%s became %s %v, want %s", expr, got, err, want)
		}
	}
	if got, _ := pcre(`.*a.*`, atStart); got != `(?:.*a)` {
		t.Errorf("what is anchored keeps its beginning, but became %s", got)
	}
}

func TestPCRERefuses(t *testing.T) {
	for expr, want := range map[string]string{
		`é`:                       "beyond ASCII",
		`[é]`:                     "beyond ASCII",
		`[^é]`:                    "beyond ASCII",
		`\p{Greek}`:               "beyond ASCII",
		`(?i)é`:                   "beyond ASCII",
		`(?m)^a`:                  "flag m",
		`(?m)a$`:                  "flag m",
		`(a+)+`:                   "repeats inside",
		strings.Repeat(`\W`, 100): "too long for nginx",
	} {
		if got, err := pcre(expr, anywhere); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s became %q %v, want an error with %q", expr, got, err, want)
		}
	}
}

// patternText is what a translated expression may consist of.
var patternText = regexp.MustCompile(`^(?:[0-9A-Za-z.*+?|()\[\]{},:!-]|\\x[0-9a-f]{2}|\\[AzbB])*$`)

// FuzzPCRE checks that whatever an expression says, its translation holds nothing
// that nginx or PCRE reads in another way, captures nothing, and matches what the
// expression does. RE2 reads translations too, as long as there is no (?!).
func FuzzPCRE(f *testing.F) {
	for _, seed := range [][2]string{
		{`.*Firefox.*`, "a Firefox b"},
		{`^(.*?;)?(type=insider)(;.*)?$`, "a;type=insider"},
		{`(?i)[^k]S`, "aſ"},
		{`"; include /etc/passwd; #`, `"`},
		{`\$\{x\}`, "${x}"},
		{`(?s)a.b|c`, "a\nb"},
		{`\x{e9}`, "é"},
		{`[[:^alpha:]]{2}`, "1-"},
		{`\Q`, "0"},
		{`a|\Q(b`, "(b"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, expr, value string) {
		// As it is read and not as it is written, since \Q takes in all that follows it.
		parsed, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			return
		}
		for _, where := range []anchoring{anywhere, atStart} {
			text, err := pcre(expr, where)
			if err != nil {
				return
			}
			if !patternText.MatchString(text) || len(text) > maxPattern {
				t.Fatalf("%q became %q", expr, text)
			}
			if strings.Contains(text, "(?!)") || strings.ContainsFunc(value, func(r rune) bool { return r > 0x7f || r == '\n' }) {
				continue
			}
			anchor := map[anchoring]string{anywhere: "(?:", atStart: `\A(?:`}[where]
			re, err := regexp.Compile(anchor + text + ")")
			if err != nil {
				t.Fatalf("%q became %q: %v", expr, text, err)
			}
			if re.NumSubexp() > 0 {
				t.Errorf("%q became %q, which captures", expr, text)
			}
			original := regexp.MustCompile(anchor + parsed.String() + ")")
			if got, want := re.MatchString(value), original.MatchString(value); got != want {
				t.Errorf("%q became %q, which matches %q: %t, want %t", expr, text, value, got, want)
			}
		}
	})
}
