// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
)

// route is what the handler answers: a pattern of its source, so that a new one is tested too.
type route struct{ method, path string }

var pattern = regexp.MustCompile(`mux\.Handle\("(GET|POST) (/[^"]*)"`)

// routes of the handler, with an object in place of what a path leaves open.
func routes(t *testing.T) map[string][]route {
	t.Helper()
	source, err := os.ReadFile("handler.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]route{}
	for _, m := range pattern.FindAllStringSubmatch(string(source), -1) {
		name := "website"
		if strings.Contains(m[2], "/canaries/") {
			name = "bigger-cache"
		}
		found[m[1]] = append(found[m[1]], route{m[1], strings.NewReplacer("{namespace}", "shop", "{name}", name).Replace(m[2])})
	}
	if len(found["GET"]) < 5 || len(found["POST"]) < 3 {
		t.Fatalf("the source has the routes %v", found)
	}
	return found
}

// asked notes all that a cluster is asked, and apart from that what changes something in it.
type asked struct {
	mu           sync.Mutex
	all, changes []string
}

// since is what was asked since the last time.
func (a *asked) since() (all, changes []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all, changes = a.all, a.changes
	a.all, a.changes = nil, nil
	return all, changes
}

func (a *asked) watch(api client.WithWatch) client.WithWatch {
	note := func(what string, change bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, what)
		if change {
			a.changes = append(a.changes, what)
		}
	}
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			note("get", false)
			return api.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			note("list", false)
			return api.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.CreateOption) error {
			switch o.(type) {
			case *authenticationv1.SelfSubjectReview, *authorizationv1.SelfSubjectAccessReview:
				note("review", false) // it changes nothing
			default:
				note("create", true)
			}
			return api.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			note("patch", true)
			return api.Patch(ctx, o, p, options...)
		},
		Update: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			note("update", true)
			return api.Update(ctx, o, options...)
		},
		Delete: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			note("delete", true)
			return api.Delete(ctx, o, options...)
		},
	})
}

// bodies are changes that the handler makes, by the path that they are sent to.
var bodies = map[string]string{
	"/api/rollouts/shop/website/actions":      `{"action":"Abort","revision":"canary2","step":0,"reason":""}`,
	"/api/canaries/shop/bigger-cache/actions": `{"action":"Deprecated","revision":"3"}`,
	"/api/rollouts/shop/website/what-if":      `{}`,
}

// sent is a request that the page itself would send.
func sent(to route, cookie *http.Cookie) *http.Request {
	r := httptest.NewRequest(to.method, origin+to.path, strings.NewReader(bodies[to.path]))
	r.AddCookie(cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if to.method == http.MethodPost {
		r.Header.Set("Origin", origin)
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// attacks are what browsers send for pages of others. All of them have the cookie, as if
// SameSite did not hold it back: it does not for another port of this machine.
var attacks = map[string]func(*http.Request){
	"no Origin":                          func(r *http.Request) { r.Header.Del("Origin") },
	"an Origin that is null":             func(r *http.Request) { r.Header.Set("Origin", "null") },
	"another site":                       func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.org") },
	"another port":                       func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9090") },
	"no port":                            func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1") },
	"another scheme":                     func(r *http.Request) { r.Header.Set("Origin", "https://127.0.0.1:8080") },
	"a host that begins alike":           func(r *http.Request) { r.Header.Set("Origin", origin+".evil.example.org") },
	"a subdomain":                        func(r *http.Request) { r.Header.Set("Origin", "http://evil.localhost:8080"); r.Host = "localhost:8080" },
	"its other name":                     func(r *http.Request) { r.Header.Set("Origin", "http://localhost:8080") },
	"an Origin that is cut off":          func(r *http.Request) { r.Header.Set("Origin", "http://") },
	"a user in the Origin":               func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080@evil.example.org") },
	"a site that only the browser names": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	"a page of the same site":            func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	"a form of plain text":               func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	"a form":                             func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
	"a form with files": func(r *http.Request) {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=a")
	},
	"plain text that says JSON":    func(r *http.Request) { r.Header.Set("Content-Type", "text/plain; application/json") },
	"no type":                      func(r *http.Request) { r.Header.Del("Content-Type") },
	"another method in the header": func(r *http.Request) { r.Header.Del("Origin"); r.Header.Set("X-HTTP-Method-Override", "POST") },
	"a name that resolves to this machine": func(r *http.Request) {
		r.Host = "rebound.example.org:8080"
		r.Header.Set("Origin", "http://rebound.example.org:8080")
	},
	"such a name without a port": func(r *http.Request) { r.Host = "rebound.example.org" },
	"such a name, and a proxy that says another": func(r *http.Request) {
		r.Host = "rebound.example.org"
		r.Header.Set("X-Forwarded-Host", "127.0.0.1:8080")
		r.Header.Set("Forwarded", "host=127.0.0.1:8080")
	},
	"a host with a dot at its end": func(r *http.Request) { r.Host = "localhost.:8080" },
	"no host":                      func(r *http.Request) { r.Host = "" },
}

func TestNoPageOfOthersChangesAnything(t *testing.T) {
	for _, to := range routes(t)["POST"] {
		if bodies[to.path] == "" {
			t.Errorf("write a change that %s makes", to.path)
		}
		t.Run(to.path, func(t *testing.T) {
			var a asked
			h, l := loopback(t, false, &dashboard.Viewer{API: a.watch(cluster(t, website(), cache()).Build())})
			_, cookie := open(t, h, l, "")
			for name, attack := range attacks {
				r := sent(to, cookie)
				attack(r)
				got := do(h, r)
				if all, _ := a.since(); got.StatusCode != http.StatusForbidden && got.StatusCode != http.StatusMisdirectedRequest || len(all) > 0 {
					t.Errorf("%s: status %d, and the cluster was asked %q", name, got.StatusCode, all)
				}
				if len(got.Cookies()) > 0 {
					t.Errorf("%s: the answer has cookies", name)
				}
			}
			// What is refused is the page that sends it, not the change.
			got := do(h, sent(to, cookie))
			if all, _ := a.since(); got.StatusCode == http.StatusForbidden || len(all) == 0 {
				t.Errorf("the page itself: status %d, and the cluster was asked %q", got.StatusCode, all)
			}
		})
	}
}

func TestNoAnswerLetsAPageOfOthersReadOrAskFirst(t *testing.T) {
	all := routes(t)
	h, l := loopback(t, false, &dashboard.Viewer{API: cluster(t, website(), cache()).Build()})
	_, cookie := open(t, h, l, "")
	for _, to := range slices.Concat(all["GET"], all["POST"]) {
		for _, from := range []string{"https://evil.example.org", "http://127.0.0.1:9090", "null", origin} {
			r := httptest.NewRequest(http.MethodOptions, origin+to.path, nil)
			r.AddCookie(cookie)
			r.Header.Set("Origin", from)
			r.Header.Set("Access-Control-Request-Method", to.method)
			r.Header.Set("Access-Control-Request-Headers", "content-type")
			got := do(h, r)
			if got.StatusCode < http.StatusBadRequest {
				t.Errorf("%s %s: the preflight of %s has the status %d", to.method, to.path, from, got.StatusCode)
			}
			for name := range got.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: the answer to %s has %s", to.method, to.path, from, name)
				}
			}
		}
	}
}

// SameSite holds no cookie back from a page that leads the browser here by a link, nor does any
// check, so that reading must change nothing.
func TestReadingChangesNothing(t *testing.T) {
	for _, to := range routes(t)["GET"] {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			var a asked
			h, l := loopback(t, false, &dashboard.Viewer{API: a.watch(cluster(t, website(), cache()).Build()), Namespace: "shop"})
			_, cookie := open(t, h, l, "")
			// A stream goes on until its browser leaves.
			ctx, leave := context.WithCancel(t.Context())
			r := sent(route{method, to.path + "?kind=deployments"}, cookie).WithContext(ctx)
			h.ServeHTTP(&leaving{httptest.NewRecorder(), leave}, r)
			leave()
			if _, changes := a.since(); len(changes) > 0 {
				t.Errorf("%s %s: the cluster was asked to %q", method, to.path, changes)
			}
		}
	}
	for path, body := range bodies { // and what the page does by POST is not done by GET
		var a asked
		h, l := loopback(t, false, &dashboard.Viewer{API: a.watch(cluster(t, website(), cache()).Build())})
		_, cookie := open(t, h, l, "")
		r := httptest.NewRequest(http.MethodGet, origin+path, strings.NewReader(body))
		r.AddCookie(cookie)
		r.Header.Set("X-HTTP-Method-Override", http.MethodPost)
		got := do(h, r)
		if all, _ := a.since(); got.StatusCode != http.StatusNotFound || len(all) > 0 {
			t.Errorf("GET %s: status %d, and the cluster was asked %q", path, got.StatusCode, all)
		}
	}
}

// leaving is a browser that leaves when it has been told something of the cluster.
type leaving struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l *leaving) Write(p []byte) (int, error) {
	if !strings.HasPrefix(string(p), "event: scope") {
		defer l.leave()
	}
	return l.ResponseRecorder.Write(p)
}

// The library knows what browsers send by now. Whatever it refuses has to be refused here.
func TestTheGuardIsNoLaxerThanTheLibrary(t *testing.T) {
	library := http.NewCrossOriginProtection()
	guard := dashboard.Guard([]string{origin, "http://localhost:8080"}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	refusals, stricter := 0, map[string]bool{}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{"/", "/open", "/api/viewer"} {
			for _, host := range []string{"127.0.0.1:8080", "localhost:8080", "rebound.example.org:8080"} {
				for _, from := range []string{"", "null", origin, "http://localhost:8080", "https://127.0.0.1:8080", "http://127.0.0.1:9090", "http://rebound.example.org:8080", "https://evil.example.org"} {
					for _, site := range []string{"", "none", "same-origin", "same-site", "cross-site", "Same-Origin", "unheard-of"} {
						r := httptest.NewRequest(method, origin+path, nil)
						r.Host = host
						r.Header.Set("Content-Type", "application/json")
						for name, value := range map[string]string{"Origin": from, "Sec-Fetch-Site": site} {
							if value != "" {
								r.Header.Set(name, value)
							}
						}
						passes := do(guard, r).StatusCode == http.StatusOK
						switch err := library.Check(r); {
						case err != nil && passes:
							t.Errorf("%s %s%s from %q, site %q: passes, and the library says %v", method, host, path, from, site, err)
						case err != nil:
							refusals++
						case !passes && site == "" && host != "rebound.example.org:8080":
							stricter[method+" from "+from+" to "+host] = true
						}
					}
				}
			}
		}
	}
	if refusals == 0 {
		t.Error("the library refused nothing")
	}
	// Why the library does not do in its place.
	for _, what := range []string{"POST from  to 127.0.0.1:8080", "POST from https://127.0.0.1:8080 to 127.0.0.1:8080", "GET from https://evil.example.org to 127.0.0.1:8080"} {
		if !stricter[what] {
			t.Errorf("the library refuses %s too; decision 112 says that it does not. Beyond it are %q", what, slices.Sorted(maps.Keys(stricter)))
		}
	}
}
