// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

// browser keeps cookies.
func browser(t *testing.T, protocol traffic.Protocol) *http.Client {
	t.Helper()
	client := &http.Client{}
	if protocol == traffic.ProtocolHTTP2 {
		client = clearHTTP2(t)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Jar = jar
	return client
}

// visit asks once and returns who answered, with the cookies that came.
func visit(t *testing.T, client *http.Client, url string) (string, []*http.Cookie) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %q %v", response.Status, body, err)
	}
	return string(body), response.Cookies()
}

func TestAClientComesBackToItsBackend(t *testing.T) {
	t.Parallel()
	for _, protocol := range []traffic.Protocol{traffic.ProtocolHTTP, traffic.ProtocolHTTP2} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			r := startRig(t, rigOptions{})
			stable, canary := serveAt(t, "web-stable", "127.0.0.1:0"), serveAt(t, "web-canary", "127.0.0.1:0")
			sticky := func(a, b int32) {
				t.Helper()
				r.wantSplit(t, traffic.Split{Sticky: &traffic.Sticky{Cookie: "version", MaxAge: 60}, Ports: []traffic.Port{{
					Number: 80, TargetNumber: r.port, Protocol: protocol,
					Destinations: []traffic.Destination{stable.destination(a), canary.destination(b)},
				}}})
			}
			sticky(50, 50)
			first := map[string]*http.Client{}
			for len(first) < 2 { // one client for each backend
				client := browser(t, protocol)
				who, cookies := visit(t, client, r.url("/a/b"))
				first[who] = client
				if len(cookies) != 1 || cookies[0].Name != "version" || cookies[0].MaxAge != 60 || !cookies[0].HttpOnly ||
					cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Path != "/" || len(cookies[0].Value) != 17 {
					t.Fatalf("cookies %v", cookies)
				}
			}
			stays := func(when string) {
				t.Helper()
				for who, client := range first {
					for range 20 {
						if got, cookies := visit(t, client, r.url("/")); got != who || len(cookies) > 0 {
							t.Fatalf("%s a client of %s gets %s and the cookies %v", when, who, got, cookies)
						}
					}
				}
			}
			stays("with the same weights")
			sticky(1, 10000)
			stays("with new weights")
			sticky(1, 0)
			got, cookies := visit(t, first["web-canary"], r.url("/"))
			if got != "web-stable" || len(cookies) != 1 {
				t.Errorf("without weight for it, a client of the canary gets %s and the cookies %v", got, cookies)
			}
			sticky(1, 10000)
			if got, _ := visit(t, first["web-canary"], r.url("/")); got != "web-stable" {
				t.Errorf("after that it gets %s", got)
			}
		})
	}
}

// Who has a cookie is measured like who has none, and counted as well.
func TestRequestsThatComeBackAreCountedTwice(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := startBackend(t, "web-stable", nil)
	r.wantSplit(t, traffic.Split{Sticky: &traffic.Sticky{Cookie: "version"}, Ports: []traffic.Port{{
		Number: 80, TargetNumber: r.port, Protocol: traffic.ProtocolHTTP, Destinations: []traffic.Destination{stable.destination(1)},
	}}})
	client := browser(t, traffic.ProtocolHTTP)
	for range 5 {
		visit(t, client, r.url("/"))
	}
	for _, forged := range []string{"", "v0123456789abcdef", "../../x", "web-stable"} {
		if got := ask(t, http.MethodGet, r.url("/"), "Cookie: version="+forged); got != "web-stable" {
			t.Errorf("with the cookie %q: %s", forged, got)
		}
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]int{"web-stable": {"200": 9}}, r.requests(t)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[string]int{"web-stable": {"200": 4}}, r.counter(t, "serin_proxy_sticky_requests_total")); diff != "" {
		t.Errorf("of those, came back (-want +got):\n%s", diff)
	}
}

// What matches nothing is not shared, so it is neither given a cookie nor led by one.
func TestOnlyWhatMatchesComesBack(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startBackend(t, "web-stable", nil), startBackend(t, "web-canary", nil)
	split := r.limited(stable, canary, [2]int32{0, 1}, traffic.Match{Path: "/beta"})
	split.Sticky = &traffic.Sticky{Cookie: "version"}
	r.wantSplit(t, split)
	client := browser(t, traffic.ProtocolHTTP)
	for _, test := range []struct {
		path, want string
		cookies    int
	}{{"/", "web-stable", 0}, {"/beta", "web-canary", 1}, {"/beta", "web-canary", 0}, {"/", "web-stable", 0}} {
		if got, cookies := visit(t, client, r.url(test.path)); got != test.want || len(cookies) != test.cookies {
			t.Errorf("%s: %s with %d cookies, want %s with %d", test.path, got, len(cookies), test.want, test.cookies)
		}
	}
}

// The Services of the versions have the same names in each release.
func TestAClientOfOneSessionIsDrawnAnewInTheNext(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := serveAt(t, "web-stable", "127.0.0.1:0"), serveAt(t, "web-canary", "127.0.0.1:0")
	release := func(session string, a, b int32) {
		t.Helper()
		r.wantSplit(t, traffic.Split{Sticky: &traffic.Sticky{Cookie: "version", MaxAge: 60, Session: session}, Ports: []traffic.Port{{
			Number: 80, TargetNumber: r.port, Protocol: traffic.ProtocolHTTP,
			Destinations: []traffic.Destination{stable.destination(a), canary.destination(b)},
		}}})
	}
	client := browser(t, traffic.ProtocolHTTP)
	asks := func(when, want string, cookies int) {
		t.Helper()
		if got, given := visit(t, client, r.url("/")); got != want || len(given) != cookies {
			t.Fatalf("%s the client gets %s and the cookies %v, want %s and %d", when, got, given, want, cookies)
		}
	}
	release("first", 0, 1)
	asks("in the first release", "web-canary", 1)
	release("first", 10000, 1)
	asks("at a small weight", "web-canary", 0)
	release("second", 1, 0)
	asks("in the second release", "web-stable", 1)
	release("second", 1, 10000)
	asks("at a large weight of the second", "web-stable", 0)
}
