// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

// request is what routes match.
type request struct {
	path, method string
	headers      map[string]string
	params       map[string]string
}

// serve is a small model of the Gateway API: the index of the rule that gets a
// request, or -1. It knows nothing of the code that is tested, but for how fields are
// read.
func serve(rules []map[string]any, r request) int {
	best, at := []int(nil), -1
	for i, rule := range rules {
		matches := objectsOf(rule["matches"])
		if len(matches) == 0 {
			matches = []map[string]any{{}}
		}
		for _, m := range matches {
			rank, ok := meets(m, r)
			if ok && (at < 0 || slices.Compare(rank, best) > 0) {
				best, at = rank, i
			}
		}
	}
	return at
}

// meets reports whether a request meets a match, and how the match ranks.
func meets(m map[string]any, r request) ([]int, bool) {
	rank := []int{0, 0, 0, 0, 0}
	path, _ := m["path"].(map[string]any)
	value, _ := path["value"].(string)
	switch path["type"] {
	case "Exact":
		if r.path != value {
			return nil, false
		}
		rank[0] = 1
	case "PathPrefix", nil:
		if value == "" {
			value = "/"
		}
		rank[1] = len(value)
		prefix := strings.TrimSuffix(value, "/")
		if r.path != prefix && !strings.HasPrefix(r.path, prefix+"/") {
			return nil, false
		}
	default:
		panic("the model knows no expressions on paths")
	}
	if method, found := m["method"]; found {
		if method != r.method {
			return nil, false
		}
		rank[2] = 1
	}
	for n, field := range []string{"headers", "queryParams"} {
		values := []map[string]string{r.headers, r.params}[n]
		for _, h := range objectsOf(m[field]) {
			if !meetsValue(h, values) {
				return nil, false
			}
			rank[3+n]++
		}
	}
	return rank, true
}

func meetsValue(h map[string]any, values map[string]string) bool {
	name, _ := h["name"].(string)
	value, found := values[strings.ToLower(name)]
	wanted, _ := h["value"].(string)
	if h["type"] == "RegularExpression" {
		return found && compiled("^(?:"+wanted+")$").MatchString(value)
	}
	return found && value == wanted
}

// shares tells by the specification of HTTPRouteGroups whether a request is split.
func shares(matches []traffic.Match, r request) bool {
	return slices.ContainsFunc(matches, func(m traffic.Match) bool {
		if len(m.Methods) > 0 && !slices.Contains(m.Methods, r.method) {
			return false
		}
		if m.Path != "" && !compiled("^(?:"+m.Path+")").MatchString(r.path) {
			return false
		}
		return !slices.ContainsFunc(m.Headers, func(h traffic.Header) bool {
			value := r.headers[h.Name]
			return value == "" || !compiled(h.Regex).MatchString(value)
		})
	})
}

var expressions sync.Map

// compiled is an expression, which is compiled once.
func compiled(expression string) *regexp.Regexp {
	if re, found := expressions.Load(expression); found {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(expression)
	expressions.Store(expression, re)
	return re
}

// draw takes one of several.
func draw[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drawRules(r *rand.Rand) []map[string]any {
	rules := make([]map[string]any, 1+r.IntN(4))
	for i := range rules {
		matches := make([]any, r.IntN(3))
		for j := range matches {
			matches[j] = drawMatch(r)
		}
		rules[i] = map[string]any{
			"timeouts":    map[string]any{"request": fmt.Sprint(i, "s")}, // tells the rule in what becomes of it
			"backendRefs": []any{map[string]any{"name": draw(r, "website", "website", "other"), "port": int64(80)}},
		}
		if len(matches) > 0 {
			rules[i]["matches"] = matches
		}
		if r.IntN(4) == 0 {
			rules[i][fieldSessions] = map[string]any{"type": "Cookie"}
		}
	}
	rules[0]["backendRefs"] = []any{map[string]any{"name": "website", "port": int64(80)}}
	return rules
}

func drawMatch(r *rand.Rand) map[string]any {
	m := map[string]any{}
	if r.IntN(4) > 0 {
		m["path"] = map[string]any{"type": draw(r, "Exact", "PathPrefix", "PathPrefix"), "value": draw(r, "/", "/a", "/a/b", "/a/", "/c")}
	}
	if r.IntN(4) == 0 {
		m["method"] = draw(r, "GET", "POST")
	}
	var headers []any
	for _, name := range []string{"X-One", "x-two"} {
		if r.IntN(4) == 0 {
			headers = append(headers, map[string]any{"type": "Exact", "name": name, "value": draw(r, "yes", "no")})
		}
	}
	if headers != nil {
		m["headers"] = headers
	}
	if r.IntN(6) == 0 {
		m["queryParams"] = []any{map[string]any{"type": "Exact", "name": "q", "value": draw(r, "1", "2")}}
	}
	return m
}

func drawSplitMatch(r *rand.Rand) traffic.Match {
	m := traffic.Match{Group: "g", Name: "m"}
	if r.IntN(3) == 0 {
		m.Path = draw(r, "/a(/|$)", "/a/", "/a$", "/(a|c)/", "/", "/a/b(/.*)?$", ".*", "/a/.*", "/[ac]$", "/(a/|a/b/)")
	}
	if r.IntN(3) == 0 {
		m.Methods = draw(r, []string{"GET"}, []string{"GET", "POST"}, []string{"HEAD"})
	}
	for _, name := range []string{"x-one", "x-three"} {
		if r.IntN(3) == 0 {
			m.Headers = append(m.Headers, traffic.Header{Name: name, Regex: draw(r, "^yes$", "y", "^(yes|no)$", ".+", "e.?")})
		}
	}
	return m
}

func requests() []request {
	var all []request
	for _, path := range []string{"/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/c", "/c/d", "/d"} {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			for _, one := range []string{"", "yes", "no", "maybe"} {
				for _, rest := range []map[string]string{{}, {"x-two": "yes", "x-three": "yes"}, {"x-three": "no"}} {
					headers := map[string]string{}
					maps.Copy(headers, rest)
					if one != "" {
						headers["x-one"] = one
					}
					all = append(all, request{path, method, headers, map[string]string{}}, request{path, method, headers, map[string]string{"q": "1"}})
				}
			}
		}
	}
	return all
}

// For every request: who gets it is who would have got it without the split, and if
// that is the root Service, then the backends of the split get it exactly when it
// matches. Whatever can't be said so is refused.
func TestMatchesAreNeverWidenedNarrowedOrShadowed(t *testing.T) {
	t.Parallel()
	const rounds = 600
	all := requests()
	rendered, generated := 0, 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 1))
		rules := drawRules(r)
		split := splitFor()
		split.Limited = true
		for range 1 + r.IntN(3) {
			split.Matches = append(split.Matches, drawSplitMatch(r))
		}
		out, err := Render(kindHTTPRoute, rules, split, Schema{})
		if err != nil {
			continue
		}
		rendered++
		after := fieldsOf(out)
		for _, q := range all {
			was, is := serve(rules, q), serve(after, q)
			if (was < 0) != (is < 0) || was >= 0 && out[is].Source != was {
				t.Fatalf("seed %d: %+v went to rule %d, now to %d\nsplit %+v\nbefore %v\nafter %v", seed, q, was, is, split.Matches, rules, after)
			}
			if was < 0 || !concerned(rules[was], split) {
				continue
			}
			wanted := shares(split.Matches, q)
			if got := len(objectsOf(after[is]["backendRefs"])) == 2; got != wanted {
				t.Fatalf("seed %d: %+v is split: %t, want %t (rule %d)\nsplit %+v\nbefore %v\nafter %v", seed, q, got, wanted, is, split.Matches, rules, after)
			}
			if wanted {
				generated++
			}
		}
	}
	t.Logf("%d of %d were rendered, %d requests split", rendered, rounds, generated)
	if rendered < rounds/4 || generated < rounds {
		t.Errorf("only %d of %d could be rendered, with %d requests split: the test says nothing", rendered, rounds, generated)
	}
}

// splitFor is a split of the Service website on port 80.
func splitFor() traffic.Split {
	split := traffic.Split{Root: "website", Ports: []traffic.Port{{
		Number: 80, Protocol: traffic.ProtocolHTTP,
		Destinations: []traffic.Destination{
			{Service: "website-stable", Port: 80, Weight: 90}, {Service: "website-canary", Port: 80, Weight: 10},
		},
	}}}
	split.Namespace, split.Name = "shop", "website"
	return split
}
