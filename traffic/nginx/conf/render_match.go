// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/expression"
)

// maxConditions of all matches of a split: each may be looked at for each request.
const maxConditions = 128

// pcreOptions of every expression: the dot stops at \n, and nginx may take so many
// steps, a few milliseconds. Beyond them the request does not match.
const pcreOptions = "(*LF)(*LIMIT_MATCH=100000)"

// matched is the variable that is 1 for a request that the weights share.
const matched = "serin_matched"

// CheckMatches refuses what nginx can't express. Errors name the group and match.
func CheckMatches(matches []traffic.Match) error {
	var errs []error
	n := 0
	for _, m := range matches {
		n += m.Conditions()
		if _, err := makeConditions(m); err != nil {
			errs = append(errs, fmt.Errorf("spec.matches: %s: %w", m, err))
		}
	}
	if n > maxConditions {
		errs = append(errs, fmt.Errorf("spec.matches: the groups have %d conditions, each of which costs time for each request; at most %d", n, maxConditions))
	}
	return errors.Join(errs...)
}

// condition is one variable to look at, with the entries of a map that make it hold.
type condition struct {
	variable string
	keys     []string
}

// variableHeader is a header's name that nginx has a variable for. There, a - is a
// _, so a name with a _ would also stand for another header.
var variableHeader = regexp.MustCompile(`^[a-z0-9-]+$`)

// makeConditions translates a set of requests.
func makeConditions(m traffic.Match) ([]condition, error) {
	var conditions []condition
	if len(m.Methods) > 0 {
		for _, method := range m.Methods {
			if !plainMethod.MatchString(method) {
				return nil, fmt.Errorf("methods: %.20q is not a method", method)
			}
		}
		conditions = append(conditions, condition{"$request_method", m.Methods})
	}
	if m.Path != "" {
		if err := expression.Check(m.Path); err != nil {
			return nil, fmt.Errorf("pathRegex: %w", err)
		}
		conditions = append(conditions, condition{"$serin_path", []string{"~" + pcreOptions + "^(?:" + m.Path + ")"}})
	}
	for _, h := range m.Headers {
		if !variableHeader.MatchString(h.Name) {
			return nil, fmt.Errorf("headers: nginx can't tell the header %.50q from others; use one whose name has only letters, digits and -", h.Name)
		}
		if err := expression.Check(h.Regex); err != nil {
			return nil, fmt.Errorf("headers: %s: %w", h.Name, err)
		}
		conditions = append(conditions, condition{
			"$http_" + strings.ReplaceAll(h.Name, "-", "_"), []string{"~" + pcreOptions + h.Regex},
		})
	}
	return conditions, nil
}

// plainMethod is a word that no map takes for a directive of its own.
var plainMethod = regexp.MustCompile(`^[A-Z]{1,20}$`)

// renderMatches writes the variable that says whether a request is shared:
//
//	serin_c_<match>_<condition>   1 when the condition holds
//	serin_m_<match>               1 when all of its conditions hold
//	serin_matched                 1 when one of the matches holds
//
// nginx takes a map's exact keys before its expressions. So the empty key keeps a
// header that is absent from an expression that matches nothing.
func renderMatches(t *text, matches []traffic.Match) {
	t.entries("map", []string{"$request_uri", "$serin_path"},
		[2]string{"default", ""}, [2]string{`~\A(?<serin_path_sent>[^?#]*)`, "$serin_path_sent"})
	var sets strings.Builder
	for i, m := range matches {
		conditions, err := makeConditions(m)
		if err != nil {
			panic(err) // CheckMatches has found none
		}
		var all strings.Builder
		for j, c := range conditions {
			name := fmt.Sprintf("$serin_c_%d_%d", i, j)
			entries := [][2]string{{"default", "0"}, {"", "0"}}
			for _, key := range c.keys {
				entries = append(entries, [2]string{key, "1"})
			}
			t.entries("map", []string{c.variable, name}, entries...)
			all.WriteString(name)
		}
		name := "$serin_m_" + strconv.Itoa(i)
		t.entries("map", []string{all.String(), name}, [2]string{"default", "0"}, [2]string{strings.Repeat("1", len(conditions)), "1"})
		sets.WriteString(name)
	}
	t.entries("map", []string{sets.String(), "$" + matched}, [2]string{"default", "0"}, [2]string{"~1", "1"})
}
