// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// limited is a split of the rig's port by 0:1 among stable and canary, whose
// requests that match nothing go to stable.
func (r *rig) limited(stable, canary *backend, weights [2]int32, matches ...traffic.Match) traffic.Split {
	unmatched := stable.destination(0)
	return traffic.Split{
		Limited: true, Matches: matches,
		Ports: []traffic.Port{{
			Number: 80, TargetNumber: r.port, Protocol: traffic.ProtocolHTTP, Default: &unmatched,
			Destinations: []traffic.Destination{stable.destination(weights[0]), canary.destination(weights[1])},
		}},
	}
}

// ask sends one request, with header lines like "X-A: 1", and returns who answered.
func ask(t *testing.T, method, url string, headers ...string) string {
	t.Helper()
	request, err := http.NewRequest(method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header[name] = append(request.Header[name], value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s %q: %s %v", method, url, headers, response.Status, err)
	}
	return string(body)
}

func TestRequestsThatMatchAreSplitAndNoOthers(t *testing.T) {
	t.Parallel()
	header := func(name, regex string) traffic.Header { return traffic.Header{Name: name, Regex: regex} }
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.wantSplit(t, r.limited(stable, canary, [2]int32{0, 1},
		traffic.Match{Group: "a", Name: "firefox", Headers: []traffic.Header{header("user-agent", ".*Firefox.*")}},
		traffic.Match{Group: "a", Name: "and", Methods: []string{"POST", "PUT"}, Path: "/api/v[12](/|$)", Headers: []traffic.Header{
			header("x-user", "^(alice|bob)$"), header("x-region", "(?i)^eu-"),
		}},
		traffic.Match{Group: "b", Name: "insiders", Headers: []traffic.Header{header("cookie", "^(.*?;)?(type=insider)(;.*)?$")}},
		traffic.Match{Group: "b", Name: "any value", Headers: []traffic.Header{header("x-any", ".*")}},
		traffic.Match{Group: "b", Name: "path", Path: "/beta.*x"},
	))
	and := []string{"X-User: bob", "X-Region: EU-west"}
	for _, test := range []struct {
		name, method, path string
		headers            []string
		canary             bool
	}{
		{"nothing matches", "GET", "/", nil, false},
		{"a header matches", "GET", "/", []string{"User-Agent: Mozilla Firefox/9"}, true},
		{"a header matches in part only, in another case", "GET", "/", []string{"User-Agent: firefox"}, false},
		{"every condition of a match is met", "POST", "/api/v2/users", and, true},
		{"another of the methods", "PUT", "/api/v1?x=1", and, true},
		{"the method is not met", "GET", "/api/v2/users", and, false},
		{"the path is not met", "POST", "/api/v3/users", and, false},
		{"the path matches after its start only", "POST", "/x/api/v2/users", and, false},
		{"one of the headers is not there", "POST", "/api/v2/", and[:1], false},
		{"one of the headers has another value", "POST", "/api/v2/", []string{"X-User: bobby", "X-Region: eu-1"}, false},
		{"conditions of different matches do not add up", "GET", "/api/v1/", []string{"X-User: alice"}, false},
		{"a match of the other group", "GET", "/", []string{"Cookie: a=1;type=insider;b=2"}, true},
		{"a cookie that only resembles it", "GET", "/", []string{"Cookie: a=1; xtype=insiders"}, false},
		{"any value takes a value", "GET", "/", []string{"X-Any: 0"}, true},
		{"any value takes none that is absent", "GET", "/", []string{"X-Any-Other: 0"}, false},
		{"any value takes none that is empty", "GET", "/", []string{"X-Any: "}, false},
		{"the path matches from its start", "GET", "/beta/1x", nil, true},
		{"the query is not of the path", "GET", "/beta/1?x", nil, false},
		{"the path counts as it was sent", "GET", "/%62eta/x", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := map[bool]string{true: "web-canary", false: "web-stable"}[test.canary]
			if got := ask(t, test.method, r.url(test.path), test.headers...); got != want {
				t.Errorf("%s answered, want %s", got, want)
			}
		})
	}
}

// TestMatchesAndWeightsMeet checks that matching comes before the weights, that a
// change of weights of a limited split needs no reload, and who is counted where.
func TestMatchesAndWeightsMeet(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	beta := traffic.Match{Group: "g", Name: "beta", Headers: []traffic.Header{{Name: "x-beta", Regex: "1"}}}
	r.wantSplit(t, r.limited(stable, canary, [2]int32{100, 0}, beta))
	key := r.agent.rendering.Key
	const n = 2000
	shared := map[string]int{}
	for _, weight := range []int32{0, 30, 100} {
		r.wantSplit(t, r.limited(stable, canary, [2]int32{100 - weight, weight}, beta))
		got := map[string]int{}
		for range n {
			got[ask(t, "GET", r.url("/"), "X-Beta: 1")]++
		}
		for range 50 {
			if who := ask(t, "GET", r.url("/")); who != "web-stable" {
				t.Fatalf("weight %d: %s answered a request that does not match", weight, who)
			}
		}
		p := float64(weight) / 100
		if off := math.Abs(float64(got["web-canary"]) - n*p); off > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("weight %d: the canary got %d of %d requests that match", weight, got["web-canary"], n)
		}
		for who, times := range got {
			shared[who] += times
		}
	}
	if r.agent.rendering.Key != key {
		t.Error("a change of weights took a reload")
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"web-stable": {"200": shared["web-stable"]}, "web-canary": {"200": shared["web-canary"]}}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("requests that were shared (-want +got):\n%s", diff)
	}
	want = map[string]map[string]int{"web-stable": {"200": 150}}
	if diff := cmp.Diff(want, r.counter(t, "serin_proxy_unmatched_requests_total")); diff != "" {
		t.Errorf("requests that matched nothing (-want +got):\n%s", diff)
	}
}

func TestASplitWhoseGroupsAreMissingSharesNothing(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.wantSplit(t, r.limited(stable, canary, [2]int32{0, 1}))
	for range 20 {
		if who := ask(t, "GET", r.url("/"), "X-Beta: 1"); who != "web-stable" {
			t.Fatalf("%s answered", who)
		}
	}
	r.wantSplit(t, r.limited(stable, canary, [2]int32{0, 1}, traffic.Match{Group: "g", Name: "all"}))
	if who := ask(t, "GET", r.url("/")); who != "web-canary" {
		t.Errorf("a match without conditions holds every request, but %s answered", who)
	}
	split := r.limited(stable, canary, [2]int32{0, 1})
	split.Ports[0].Default = nil
	r.wantSplit(t, split)
	if code, _ := get(t, r.url("/")); code != http.StatusServiceUnavailable {
		t.Errorf("with no default a request that matches nothing got %d, want 503", code)
	}
}

// TestNginxMatchesAsRE2Does sends values to nginx that Go's regexp judges too.
func TestNginxMatchesAsRE2Does(t *testing.T) {
	t.Parallel()
	expressions := []string{
		`a`, `^a`, `a$`, `^a$`, `(?i)aB`, `[^a]`, `a.c`, `(a|bc)+d`, `^\d{2,3}$`, `\w+\W\w+`, `\bfoo\b`, `^x?y*z+$`, `[a-c0-9_.-]+@`, `a{2}`,
		`\$\{x\}`, `"`, `\\`, `;\s*\}`, `^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$`, `[a-zA-Z]+-\D*\d`, `.`, `^a+?$`, `a\.b`, `^$|q`, `[^k]s`, `(?i)[^k]S`, `^.{3}$`, `(?i:A)b`, `[.]`, `[^-\]]b`, `^(?:a|b|)\b`, `\.*\.*$`, `\S\s\S`, `'`, `#`, `~`, `(?i)[k]s`, `%`, `,`,
	}
	values := []string{
		"a", "A", "ab", "AB", "xaby", "abc", "a-c", "bcd", "d", "12", "1234", "foo", "a foo b", "food", "yz", "xyyz", "z", "a_1@", "aa", "${x}", `"`, `\`, "; }", "10.0.0.1",
		"10.0.0.1000", "ab-1", "a.b", "axb", "q", "default", "volatile", "include x", "~a", "A!", "'", "#", "KS", "ks", "50%", "a,b", "$request_uri",
	}
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	var matches []traffic.Match
	for i, e := range expressions {
		matches = append(matches, traffic.Match{Group: "g", Name: e, Headers: []traffic.Header{
			{Name: "x-case", Regex: fmt.Sprintf("^%d$", i)}, {Name: "x-value", Regex: e},
		}})
	}
	r.wantSplit(t, r.limited(stable, canary, [2]int32{0, 1}, matches...))
	for i, e := range expressions {
		for _, v := range values {
			want := map[bool]string{true: "web-canary", false: "web-stable"}[regexp.MustCompile(e).MatchString(v)]
			if got := ask(t, "GET", r.url("/"), fmt.Sprintf("X-Case: %d", i), "X-Value: "+v); got != want {
				t.Errorf("%q against %q: %s answered, want %s", e, v, got, want)
			}
		}
	}
}

// TestAnExpressionThatTakesTooLongMatchesNothing sends what would take an engine
// that backtracks longer than the test may run.
func TestAnExpressionThatTakesTooLongMatchesNothing(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	r.wantSplit(t, r.limited(stable, canary, [2]int32{0, 1},
		traffic.Match{Group: "g", Name: "slow", Headers: []traffic.Header{{Name: "x-slow", Regex: "^(a|aa)*$"}}}))
	if who := ask(t, "GET", r.url("/"), "X-Slow: aaaa"); who != "web-canary" {
		t.Errorf("%s answered what matches", who)
	}
	slow := "X-Slow: " + strings.Repeat("a", 5000) + "!"
	for range 20 {
		if who := ask(t, "GET", r.url("/"), slow); who != "web-stable" {
			t.Fatalf("%s answered", who)
		}
	}
	proxytest.Eventually(t, "the log tells each of them once", func() bool { return r.log.count("() failed: -") == 20 })
	if n := r.log.count("aaaa"); n > 0 {
		t.Errorf("the log shows the header's value %d times", n)
	}
}
