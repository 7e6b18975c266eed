// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
)

const origin = "http://127.0.0.1:8080"

// loopback is the page as the command serves it.
func loopback(t *testing.T, readOnly bool, v *dashboard.Viewer) (http.Handler, *dashboard.Loopback) {
	t.Helper()
	l := dashboard.NewLoopback(v, "8080")
	return l.Handler(dashboard.Options{Viewers: l, Origins: []string{origin, "http://localhost:8080"}, ReadOnly: readOnly, Clock: clock.RealClock{}}), l
}

// open brings the secret and returns the cookie.
func open(t *testing.T, h http.Handler, l *dashboard.Loopback, at string) (*http.Response, *http.Cookie) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, l.FirstURL(origin, at), nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site") // the browser comes from a file
	answer := do(h, r)
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("status %d, cookies %v", answer.StatusCode, answer.Cookies())
	}
	return answer, answer.Cookies()[0]
}

func do(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestTheSecretIsExchangedForACookieThatScriptsAndOtherSitesDoNotGet(t *testing.T) {
	h, l := loopback(t, false, &dashboard.Viewer{API: cluster(t).Build()})
	answer, cookie := open(t, h, l, "/rollouts/shop/website")
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Name != "serin-dashboard-8080" {
		t.Errorf("cookie: %+v", cookie)
	}
	first, err := url.Parse(l.FirstURL(origin, ""))
	if err != nil {
		t.Fatal(err)
	}
	secret := first.Query().Get("secret")
	if to := answer.Header.Get("Location"); to != "/#/rollouts/shop/website" || strings.Contains(to, secret) || strings.Contains(cookie.Value, secret) {
		t.Errorf("the browser is sent to %s with %s", to, cookie.Value)
	}
	for name, address := range map[string]string{
		"no secret": "/open", "another secret": "/open?secret=AAAA", "the cookie's value": "/open?secret=" + cookie.Value, "a part of it": "/open?secret=" + secret[:10],
	} {
		answer := do(h, httptest.NewRequest(http.MethodGet, origin+address, nil))
		if answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) > 0 {
			t.Errorf("%s: status %d, cookies %v", name, answer.StatusCode, answer.Cookies())
		}
	}
	for _, at := range []string{"https://example.org/", "//example.org", `\\example.org`} {
		if answer, _ := open(t, h, l, at); !strings.HasPrefix(answer.Header.Get("Location"), "/#/") {
			t.Errorf("the browser is sent to %s", answer.Header.Get("Location"))
		}
	}
}

func TestRequestsFromElsewhereAreRefused(t *testing.T) {
	const action = `{"action":"Abort","revision":"canary2","step":0,"reason":""}`
	api := cluster(t, website()).Build()
	for _, test := range []struct {
		name, method, path, body string
		change                   func(*http.Request)
		readOnly                 bool
		want                     int
	}{
		{"the page itself needs no cookie", "GET", "/", "", func(r *http.Request) { r.Header.Del("Cookie") }, false, 200},
		{"a read", "GET", "/api/viewer", "", nil, false, 200},
		{"a read under the other name", "GET", "/api/viewer", "", func(r *http.Request) { r.Host = "localhost:8080" }, false, 200},
		{"a read without the cookie", "GET", "/api/viewer", "", func(r *http.Request) { r.Header.Del("Cookie") }, false, 401},
		{"a read with another cookie", "GET", "/api/viewer", "", func(r *http.Request) { r.Header.Set("Cookie", "serin-dashboard-8080=AAAA") }, false, 401},
		{"a name that resolves to this machine", "GET", "/api/viewer", "", func(r *http.Request) { r.Host = "rebound.example.org:8080" }, false, 421},
		{"the page under such a name", "GET", "/", "", func(r *http.Request) { r.Host = "rebound.example.org" }, false, 421},
		{"the secret under such a name", "GET", "/open?secret=AAAA", "", func(r *http.Request) { r.Host = "rebound.example.org" }, false, 421},
		{"another port", "GET", "/api/viewer", "", func(r *http.Request) { r.Host = "127.0.0.1:9090" }, false, 421},
		{"a script of another origin that reads", "GET", "/api/viewer", "", func(r *http.Request) { r.Header.Set("Origin", "https://example.org") }, false, 403},
		{"an image of another site", "GET", "/api/viewer", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, false, 403},
		{"a page of another port, which is of the same site", "GET", "/api/viewer", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, false, 403},
		{"a change", "POST", "/api/rollouts/shop/website/actions", action, nil, false, 200},
		{"a change from another origin", "POST", "/api/rollouts/shop/website/actions", action, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9090") }, false, 403},
		{"a change from nowhere", "POST", "/api/rollouts/shop/website/actions", action, func(r *http.Request) { r.Header.Del("Origin") }, false, 403},
		{"a change from a page without an origin", "POST", "/api/rollouts/shop/website/actions", action, func(r *http.Request) { r.Header.Set("Origin", "null") }, false, 403},
		{"a change by a form", "POST", "/api/rollouts/shop/website/actions", action, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, false, 403},
		{"a change without the cookie", "POST", "/api/rollouts/shop/website/actions", action, func(r *http.Request) { r.Header.Del("Cookie") }, false, 401},
		{"a change that may not be", "POST", "/api/rollouts/shop/website/actions", action, nil, true, 403},
		{"a change with fields that are not known", "POST", "/api/rollouts/shop/website/actions", `{"action":"Abort","force":true}`, nil, false, 400},
		{"a change that is too long", "POST", "/api/rollouts/shop/website/actions", `{"reason":"` + strings.Repeat("a", 10_000) + `"}`, nil, false, 400},
		{"an action that there is not", "POST", "/api/rollouts/shop/website/actions", `{"action":"Delete"}`, nil, false, 409},
		{"an action by reading", "GET", "/api/rollouts/shop/website/actions", "", nil, false, 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, l := loopback(t, test.readOnly, &dashboard.Viewer{API: api})
			_, cookie := open(t, h, l, "")
			r := httptest.NewRequest(test.method, origin+test.path, strings.NewReader(test.body))
			r.AddCookie(cookie)
			if test.method == http.MethodPost {
				r.Header.Set("Origin", origin)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
			}
			if test.change != nil {
				test.change(r)
			}
			if got := do(h, r); got.StatusCode != test.want {
				t.Errorf("status %d, want %d", got.StatusCode, test.want)
			}
		})
	}
}

func TestEveryAnswerForbidsFramesScriptsOfOthersAndRequestsToOthers(t *testing.T) {
	h, l := loopback(t, false, &dashboard.Viewer{API: cluster(t).Build()})
	first := strings.TrimPrefix(l.FirstURL(origin, ""), origin)
	for _, path := range []string{"/", "/app.js", "/api/viewer", "/nothing", "/open", first} {
		got := do(h, httptest.NewRequest(http.MethodGet, origin+path, nil)).Header
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.Get(name))
			}
		}
		policy := got.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
			t.Errorf("%s: the policy %q lets others in", path, policy)
		}
		if strings.HasPrefix(path, "/api/") && got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept by the browser", path)
		}
	}
}

func TestNoFileButThoseOfThePageIsServed(t *testing.T) {
	h, _ := loopback(t, false, &dashboard.Viewer{API: cluster(t).Build()})
	for _, path := range []string{"/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/built/app.js", "/src/app.tsx", "/page.go", "/app.js/", "/.npmrc", "/api", "/api/"} {
		r := httptest.NewRequest(http.MethodGet, origin+"/", nil)
		r.URL = &url.URL{Path: path}
		if plain, err := url.PathUnescape(path); err == nil {
			r.URL = &url.URL{Path: plain, RawPath: path}
		}
		if got := do(h, r); got.StatusCode == http.StatusOK {
			t.Errorf("%s is served", path)
		}
	}
}
