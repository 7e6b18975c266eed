// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

// request is what a match looks at.
type request struct {
	method, path, host string
	headers            map[string]string
}

// meets evaluates a match list as Istio documents it: one block has to hold, and in it
// every condition.
func meets(t *testing.T, blocks []any, r request) bool {
	t.Helper()
	return len(blocks) == 0 || slices.ContainsFunc(blocks, func(b any) bool {
		fields, _ := b.(map[string]any)
		headers, _ := fields["headers"].(map[string]any)
		for name, value := range headers {
			text, present := r.headers[name]
			if !present || !accepts(t, value, text) {
				return false
			}
		}
		return accepts(t, fields["method"], r.method) && accepts(t, fields["uri"], r.path) && accepts(t, fields["authority"], r.host)
	})
}

func accepts(t *testing.T, value any, text string) bool {
	t.Helper()
	m, ok := parseStringMatch(value)
	if !ok {
		t.Fatalf("%v is no StringMatch", value)
	}
	met, err := m.accepts(text)
	if err != nil {
		t.Fatal(err)
	}
	return met
}

// inSet evaluates a set as traffic.Match documents it.
func inSet(m traffic.Match, r request) bool {
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, r.method) {
		return false
	}
	if m.Path != "" && !regexp.MustCompile(`\A(?:`+m.Path+`)`).MatchString(r.path) {
		return false
	}
	for _, h := range m.Headers {
		value := r.headers[h.Name]
		if h.Name == "host" {
			value = r.host
		}
		if value == "" || !regexp.MustCompile(h.Regex).MatchString(value) {
			return false
		}
	}
	return true
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomBlock(r *rand.Rand) map[string]any {
	b := map[string]any{}
	if r.IntN(2) == 0 {
		b["method"] = oneOf(r, map[string]any{"exact": "GET"}, map[string]any{"regex": "GET|PUT"}, map[string]any{"prefix": "P"})
	}
	if r.IntN(2) == 0 {
		b["uri"] = oneOf(r, map[string]any{"exact": "/api"}, map[string]any{"exact": "/x"}, map[string]any{"prefix": "/"}, map[string]any{"prefix": "/api/"})
	}
	if r.IntN(3) == 0 {
		b["headers"] = map[string]any{"x-user": oneOf(r, map[string]any{"exact": "ann"}, map[string]any{"exact": ""}, map[string]any{})}
	}
	return b
}

func randomSet(r *rand.Rand) traffic.Match {
	m := traffic.Match{Group: "g", Name: "m"}
	if r.IntN(2) == 0 {
		m.Methods = oneOf(r, []string{"GET"}, []string{"GET", "POST"}, []string{"DELETE"})
	}
	if r.IntN(2) == 0 {
		m.Path = oneOf(r, "/api", "/api($|/)", "^/x", ".*i", "(?i)/API", "/a|/x")
	}
	for _, name := range []string{"x-user", "host"} {
		if r.IntN(2) == 0 {
			m.Headers = append(m.Headers, traffic.Header{Name: name, Regex: oneOf(r, "^a", "n+$", ".+", "b.?", "(?i)ANN", "a|b")})
		}
	}
	return m
}

func randomRequest(r *rand.Rand) request {
	q := request{
		method: oneOf(r, "GET", "POST", "PUT", "DELETE"), path: oneOf(r, "/", "/api", "/api/1", "/x", "/API", "/apiary"),
		host: oneOf(r, "ann", "b.example.com", "shop"), headers: map[string]string{},
	}
	if r.IntN(3) > 0 {
		q.headers["x-user"] = oneOf(r, "", "ann", "bob", "banana")
	}
	return q
}

// The route that a limited split adds takes exactly the requests of the owner's
// route that one of the sets holds: no others, and none fewer.
func TestALimitedRouteTakesExactlyTheRequestsThatMatchBoth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 1000 {
		var own []any
		for range r.IntN(3) {
			own = append(own, randomBlock(r))
		}
		sets := []traffic.Match{randomSet(r), randomSet(r)}[:1+r.IntN(2)]
		both, err := limit(own, sets)
		if err != nil {
			refused++
			continue
		}
		for range 10 {
			q := randomRequest(r)
			want := meets(t, own, q) && slices.ContainsFunc(sets, func(m traffic.Match) bool { return inSet(m, q) })
			if got := len(both) > 0 && meets(t, both, q); got != want {
				t.Fatalf("%+v: taken %t, want %t\nowner: %v\nsets: %+v\nroute: %v", q, got, want, own, sets, both)
			}
		}
	}
	if refused > 500 {
		t.Errorf("%d of 1000 were refused, so little was tried", refused)
	}
}

func TestAHeaderThatIstioIgnoresIsRefused(t *testing.T) {
	for name, refused := range map[string]bool{"uri": true, "scheme": true, "method": true, "authority": true, "host": false, "x-user": false} {
		set := traffic.Match{Group: "g", Name: "m", Headers: []traffic.Header{{Name: name, Regex: "^a"}}}
		if _, err := limit(nil, []traffic.Match{set}); (err != nil) != refused {
			t.Errorf("%s: error %v, want it refused: %t", name, err, refused)
		}
	}
}

// An expression on a path has to match from its start.
func TestAnExactValueOfARouteIsTriedWhole(t *testing.T) {
	for path, want := range map[string]bool{"/api": true, "/api/1": true, "/v1/api": false, "/": false} {
		own := map[string]any{"uri": map[string]any{"exact": path}}
		_, possible, err := intersect(own, traffic.Match{Group: "g", Name: "m", Path: "/api"})
		if err != nil || possible != want {
			t.Errorf("%s: possible is %t, error %v, want %t", path, possible, err, want)
		}
	}
}
