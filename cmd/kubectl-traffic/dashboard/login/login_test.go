// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/login"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/session"
)

const origin = "https://serin.example.org"

// site is the dashboard below a path, with its provider, as one browser sees it.
type site struct {
	*testing.T
	provider *provider
	clock    *clocktesting.FakeClock
	handler  http.Handler
	path     string
	cookies  map[string]*http.Cookie
	log      *bytes.Buffer

	mu sync.Mutex
	// tokens are those that the API server was asked with; refused are those that it does not know.
	tokens  []string
	refused func(token string) bool
}

func newSite(t *testing.T, path string, change func(*login.Options)) *site {
	t.Helper()
	s := &site{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)), path: path, cookies: map[string]*http.Cookie{}, log: &bytes.Buffer{}}
	s.provider = newProvider(t, s.clock)
	o := login.Options{
		URL: origin + path, Tokens: true, Keys: session.RandomKey(), Duration: 12 * time.Hour, Connect: s.connect, Namespace: "shop", Cluster: "prod", Clock: s.clock,
		Provider: &login.Provider{Issuer: s.provider.URL, ClientID: "serin", Scopes: []string{"openid", "offline_access"}, Name: "Example SSO", HTTP: http.DefaultClient},
		Log:      funcr.New(func(_, args string) { s.log.WriteString(args + "\n") }, funcr.Options{}),
	}
	if change != nil {
		change(&o)
	}
	l, err := login.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.handler = l.Handler(dashboard.Options{ReadOnly: true})
	return s
}

// connect is an API server on which a user is called as the token is.
func (s *site) connect(token string) (client.WithWatch, error) {
	scheme, err := cli.NewScheme("v1alpha4")
	if err != nil {
		return nil, err
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tokens = append(s.tokens, token)
			if s.refused != nil && s.refused(token) {
				return apierrors.NewUnauthorized("Unauthorized")
			}
			if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "jane"
			}
			return nil
		},
	}).Build(), nil
}

// send sends a request as the browser does, with its cookies, and keeps those of the answer.
func (s *site) send(r *http.Request) *http.Response {
	s.Helper()
	for _, c := range s.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	answer := w.Result()
	for _, c := range answer.Cookies() {
		if s.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(s.cookies, c.Name)
		}
	}
	return answer
}

func (s *site) get(path string) *http.Response {
	s.Helper()
	return s.send(httptest.NewRequest(http.MethodGet, origin+strings.TrimSuffix(s.path, "/")+path, nil))
}

func (s *site) post(path, body string) *http.Response {
	s.Helper()
	r := httptest.NewRequest(http.MethodPost, origin+strings.TrimSuffix(s.path, "/")+path, strings.NewReader(body))
	r.Header.Set("Origin", origin)
	r.Header.Set("Content-Type", "application/json")
	return s.send(r)
}

// viewer is the status of a question that needs a session.
func (s *site) viewer() int {
	s.Helper()
	return s.get("/api/viewer").StatusCode
}

// begin begins a login and returns what the provider is sent.
func (s *site) begin(at string) url.Values {
	s.Helper()
	answer := s.get("/login/oidc?" + url.Values{"at": {at}}.Encode())
	to, err := answer.Location()
	if err != nil || !strings.HasPrefix(to.String(), s.provider.URL+"/auth?") {
		s.Fatalf("the browser is sent to %v: %v, %s", to, err, s.log)
	}
	query := to.Query()
	s.provider.change(func() { s.provider.challenge, s.provider.nonce = query.Get("code_challenge"), query.Get("nonce") })
	return query
}

// back is how the provider sends the browser back.
func (s *site) back(query url.Values) *http.Response {
	s.Helper()
	return s.get("/login/callback?" + url.Values{"code": {"a code"}, "state": {query.Get("state")}}.Encode())
}

// login logs in by the provider.
func (s *site) login() {
	s.Helper()
	if answer := s.back(s.begin("/")); answer.StatusCode != http.StatusSeeOther || s.viewer() != http.StatusOK {
		s.Fatalf("the login failed with the status %d:\n%s", answer.StatusCode, text(s.T, answer))
	}
}

func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestAUserLogsInByTheProviderAndOut(t *testing.T) {
	for _, path := range []string{"/", "/tools/serin/"} {
		t.Run(path, func(t *testing.T) {
			s := newSite(t, path, nil)
			if got := s.viewer(); got != http.StatusUnauthorized {
				t.Errorf("before the login: status %d", got)
			}
			query := s.begin("/rollouts/shop/website")
			for name, want := range map[string]string{
				"response_type": "code", "client_id": "serin", "scope": "openid offline_access", "code_challenge_method": "S256",
				"redirect_uri": origin + path + "login/callback",
			} {
				if got := query.Get(name); got != want {
					t.Errorf("%s is %q, not %q", name, got, want)
				}
			}
			for _, secret := range []string{"state", "nonce", "code_challenge"} {
				if len(query.Get(secret)) < 26 {
					t.Errorf("%s is %q", secret, query.Get(secret))
				}
			}
			answer := s.back(query)
			if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != path+"#/rollouts/shop/website" {
				t.Fatalf("after the login: status %d, %s", answer.StatusCode, to)
			}
			if len(s.cookies) != 1 {
				t.Errorf("cookies: %v", s.cookies)
			}
			about := text(t, s.get("/api/viewer"))
			for _, want := range []string{`"user":"jane"`, `"cluster":"prod"`, `"logout":true`, `"readOnly":true`} {
				if !strings.Contains(about, want) {
					t.Errorf("the viewer is %s", about)
				}
			}
			for name, c := range s.cookies {
				if strings.Contains(s.log.String(), c.Value) || strings.Contains(s.log.String(), "refresh-1") {
					t.Errorf("the log has the content of %s:\n%s", name, s.log)
				}
			}
			if answer := s.post("/api/logout", "{}"); answer.StatusCode != http.StatusOK || len(s.cookies) != 0 {
				t.Errorf("logout: status %d, cookies %v", answer.StatusCode, s.cookies)
			}
			if got := s.viewer(); got != http.StatusUnauthorized {
				t.Errorf("after the logout: status %d", got)
			}
			if !slices.Equal(s.provider.revoked, []string{"refresh-1"}) {
				t.Errorf("revoked: %q", s.provider.revoked)
			}
		})
	}
}

// Each answer of the provider, or of an attacker in its name, that must give no session.
func TestWhatIsNoLoginOfThisBrowserGivesNoSession(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	unsigned := func(payload []byte) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
	}
	claim := func(name string, value any) func(*site) {
		return func(s *site) { s.provider.claims = func(claims map[string]any) { claims[name] = value } }
	}
	for _, test := range []struct {
		name   string
		change func(*site)
		query  func(url.Values)
		want   string
	}{
		{name: "another audience", change: claim("aud", "another-client"), want: "expected audience"},
		{name: "another issuer", change: claim("iss", "https://evil.example.org"), want: "different provider"},
		{name: "an expired token", change: claim("exp", 1), want: "expired"},
		{name: "the token of another login", change: claim("nonce", "AAAA"), want: "nonce"},
		{name: "no nonce", change: func(s *site) { s.provider.claims = func(claims map[string]any) { delete(claims, "nonce") } }, want: "nonce"},
		{name: "signed by another", change: func(s *site) { s.provider.sign = s.provider.signWith(other) }, want: "signature"},
		{name: "not signed", change: func(s *site) { s.provider.sign = unsigned }, want: "unexpected signature algorithm"},
		{name: "no ID token", change: func(s *site) { s.provider.sign = func([]byte) string { return "" } }, want: "no ID token"},
		{name: "a code of another browser", change: func(s *site) { s.provider.challenge = "AAAA" }, want: "invalid_grant"},
		{name: "a user that the API server does not know", change: func(s *site) { s.refused = func(string) bool { return true } }, want: "the API server does not accept the ID tokens that Example SSO issues for the client serin"},
		{name: "a provider that fails", change: func(s *site) { s.provider.down = true }, want: "does not answer"},
		{name: "another state", query: func(q url.Values) { q.Set("state", "AAAA") }, want: "did not begin the login"},
		{name: "no state", query: func(q url.Values) { q.Del("state") }, want: "did not begin the login"},
		{name: "another provider", query: func(q url.Values) { q.Set("iss", "https://evil.example.org") }, want: "did not begin the login"},
		{name: "a refusal", query: func(q url.Values) {
			q.Set("error", "access_denied")
			q.Set("error_description", "<script>alert(1)</script>")
		}, want: "access_denied &lt;script&gt;"},
		{name: "too late", change: func(s *site) { s.clock.Step(11 * time.Minute) }, want: "ten minutes"},
		{name: "another browser", change: func(s *site) { clear(s.cookies) }, want: "did not begin the login"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, "/", nil)
			query := url.Values{"code": {"a code"}, "state": {s.begin("/").Get("state")}}
			if test.change != nil {
				s.provider.change(func() { test.change(s) })
			}
			if test.query != nil {
				test.query(query)
			}
			answer := s.get("/login/callback?" + query.Encode())
			said := text(t, answer)
			if answer.StatusCode < 400 || !strings.Contains(said, test.want) {
				t.Errorf("status %d:\n%s", answer.StatusCode, said)
			}
			if strings.Contains(said, "10.0.0.7") || strings.Contains(said, "<script>") || answer.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("the page shows too much:\n%s", said)
			}
			if len(s.cookies) != 0 || s.viewer() != http.StatusUnauthorized {
				t.Errorf("there is a session: %v", s.cookies)
			}
		})
	}
}

func TestALoginAnswersOnce(t *testing.T) {
	s := newSite(t, "/", nil)
	query := s.begin("/")
	kept := s.cookies["__Host-serin-login"]
	if kept == nil || !kept.HttpOnly || !kept.Secure || kept.SameSite != http.SameSiteLaxMode {
		t.Fatalf("cookies: %v", s.cookies)
	}
	s.back(query)
	if answer := s.back(query); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the second time: status %d", answer.StatusCode)
	}
	// The state of a login is no session, although the same server has sealed it.
	clear(s.cookies)
	s.cookies["__Host-serin-session"] = &http.Cookie{Name: "__Host-serin-session", Value: kept.Value}
	if got := s.viewer(); got != http.StatusUnauthorized {
		t.Errorf("status %d", got)
	}
}

func TestTheLoginLeadsToOwnPagesOnly(t *testing.T) {
	s := newSite(t, "/serin/", nil)
	for _, at := range []string{"https://evil.example.org/", "//evil.example.org", `/\evil.example.org`, "/@evil.example.org", "/\r\nSet-Cookie: a=b", "javascript:alert(1)", strings.Repeat("/a", 2000), ""} {
		answer := s.back(s.begin(at))
		to, err := url.Parse(answer.Header.Get("Location"))
		if err != nil || to.Host != "" || to.Scheme != "" || to.Path != "/serin/" || to.RawQuery != "" || answer.Header.Get("Set-Cookie") == "a=b" {
			t.Errorf("%q leads to %q", at, answer.Header.Get("Location"))
		}
	}
}

func TestATokenIsRefreshedBeforeItExpiresAndOnlyOnce(t *testing.T) {
	s := newSite(t, "/", nil)
	s.login()
	first := s.cookies["__Host-serin-session"]
	s.clock.Step(58 * time.Minute)
	if s.viewer() != http.StatusOK || s.cookies["__Host-serin-session"].Value != first.Value {
		t.Error("a token of two more minutes was refreshed")
	}
	s.clock.Step(90 * time.Second)
	// A page asks several things at once, with the cookie from before the refresh.
	var all sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		all.Go(func() {
			r := httptest.NewRequest(http.MethodGet, origin+"/api/viewer", nil)
			r.AddCookie(first)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			statuses[i] = w.Code
		})
	}
	all.Wait()
	if slices.ContainsFunc(statuses, func(status int) bool { return status != http.StatusOK }) {
		t.Errorf("statuses %v", statuses)
	}
	if got := len(s.provider.asked); got != 2 {
		t.Errorf("the provider was asked %d times for tokens, with the login", got)
	}
	if s.viewer() != http.StatusOK || s.cookies["__Host-serin-session"].Value == first.Value {
		t.Error("the browser has not got the refreshed session")
	}
	tokens := s.tokens
	if tokens[0] == tokens[len(tokens)-1] {
		t.Error("the API server is still asked with the first token")
	}
	// Refreshed again and again, a session ends nevertheless.
	for range 12 {
		s.clock.Step(59*time.Minute + 30*time.Second)
		s.viewer()
	}
	if got := s.viewer(); got != http.StatusUnauthorized || len(s.cookies) != 0 {
		t.Errorf("after twelve hours: status %d", got)
	}
}

func TestASessionEndsWhenItsTokenIsNotRefreshed(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*provider)
		want   int // before the token expires
		kept   bool
	}{
		{"revoked at the provider", func(p *provider) { p.refresh = "another" }, http.StatusUnauthorized, false},
		{"for another user", func(p *provider) { p.claims = func(c map[string]any) { c["sub"] = "root" } }, http.StatusUnauthorized, false},
		{"for another audience", func(p *provider) { p.claims = func(c map[string]any) { c["aud"] = "another" } }, http.StatusUnauthorized, false},
		{"with a token that is over", func(p *provider) { p.claims = func(c map[string]any) { c["exp"] = 1 } }, http.StatusUnauthorized, false},
		{"while the provider is down", func(p *provider) { p.down = true }, http.StatusOK, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, "/", nil)
			s.login()
			s.provider.change(func() { test.change(s.provider) })
			s.clock.Step(59*time.Minute + 30*time.Second)
			if got := s.viewer(); got != test.want {
				t.Errorf("status %d", got)
			}
			s.clock.Step(time.Minute)
			if got := s.viewer(); got != http.StatusUnauthorized || (len(s.cookies) != 0) != test.kept {
				t.Errorf("when the token has expired: status %d, cookies %v", got, s.cookies)
			}
			s.provider.change(func() { s.provider.down = false })
			if got := s.viewer(); (got == http.StatusOK) != test.kept {
				t.Errorf("when the provider is back: status %d", got)
			}
		})
	}
}

// jwt is a token that says when it expires.
func jwt(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".AAAA"
}

func TestAUserLogsInWithAToken(t *testing.T) {
	s := newSite(t, "/", func(o *login.Options) { o.Provider = nil })
	if got := text(t, s.get("/api/login")); got != `{"tokens":true}`+"\n" {
		t.Errorf("ways to log in: %s", got)
	}
	if got := s.get("/login/oidc").StatusCode; got != http.StatusNotFound {
		t.Errorf("without a provider: status %d", got)
	}
	token := jwt(`{"exp":` + "1767272400" + `}`) // 13:00
	if answer := s.post("/api/login/token", `{"token":" `+token+`\n"}`); answer.StatusCode != http.StatusOK || s.viewer() != http.StatusOK {
		t.Fatalf("status %d", answer.StatusCode)
	}
	if slices.ContainsFunc(s.tokens, func(t string) bool { return t != token }) {
		t.Errorf("the API server was asked with %q", s.tokens)
	}
	s.clock.Step(time.Hour)
	if got := s.viewer(); got != http.StatusUnauthorized {
		t.Errorf("when it has expired: status %d", got)
	}
	s.refused = func(token string) bool { return token == "stale" }
	asked := len(s.tokens)
	for token, want := range map[string]int{"": 400, "two words": 400, `a\r\nImpersonate-User: root`: 400, strings.Repeat("a", 9000): 400, "ä": 400, "stale": 403} {
		if answer := s.post("/api/login/token", `{"token":"`+token+`"}`); answer.StatusCode != want || len(s.cookies) != 0 {
			t.Errorf("%.20q: status %d, cookies %v", token, answer.StatusCode, s.cookies)
		}
	}
	if len(s.tokens) != asked+1 {
		t.Errorf("the API server was asked about what is no token: %q", s.tokens[asked:])
	}
	none := newSite(t, "/", func(o *login.Options) { o.Tokens = false })
	if got := none.post("/api/login/token", `{"token":"a"}`).StatusCode; got == http.StatusOK {
		t.Error("a token logs in where it may not")
	}
}

func TestEachViewerIsAskedForWithTheirOwnToken(t *testing.T) {
	var measured []string
	s := newSite(t, "/", func(o *login.Options) {
		o.Provider = nil
		o.Metrics = func(token string) (dashboard.Metrics, error) {
			measured = append(measured, token)
			return &cli.Metrics{}, nil
		}
	})
	sessions := map[string]map[string]*http.Cookie{}
	for _, user := range []string{"jane", "joe"} {
		clear(s.cookies)
		s.post("/api/login/token", `{"token":"`+user+`"}`)
		sessions[user] = maps.Clone(s.cookies)
	}
	for _, user := range []string{"jane", "joe", "joe", "jane"} {
		s.cookies, s.tokens = sessions[user], nil
		if s.viewer() != http.StatusOK || len(s.tokens) == 0 || slices.ContainsFunc(s.tokens, func(t string) bool { return t != user }) {
			t.Errorf("for %s the API server was asked with %q", user, s.tokens)
		}
	}
	if !slices.Equal(measured, []string{"jane", "joe"}) {
		t.Errorf("clients of TrafficMetrics have the tokens %q", measured)
	}
}

func TestRequestsFromElsewhereDoNothing(t *testing.T) {
	s := newSite(t, "/serin/", func(o *login.Options) { o.Provider = nil })
	for _, test := range []struct {
		name, method, path string
		change             func(*http.Request)
		want               int
	}{
		{"the page needs no session", "GET", "/serin/", nil, 200},
		{"the ways to log in", "GET", "/serin/api/login", nil, 200},
		{"probes come by address", "GET", "/healthz", func(r *http.Request) { r.Host = "10.0.0.7:8080" }, 200},
		{"the path without its slash", "GET", "/serin", nil, 307},
		{"outside of the path", "GET", "/api/login", nil, 404},
		{"another host", "GET", "/serin/api/login", func(r *http.Request) { r.Host = "evil.example.org" }, 421},
		{"the host of a proxy that is not configured", "GET", "/serin/api/login", func(r *http.Request) { r.Host = "10.0.0.7"; r.Header.Set("X-Forwarded-Host", "serin.example.org") }, 421},
		{"a login of another site", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.org") }, 403},
		{"a login of a page without an origin", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"a login of the same host without TLS", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", "http://serin.example.org") }, 403},
		{"a login of another port", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", origin+":8443") }, 403},
		{"a login of a subdomain", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", "https://evil.serin.example.org") }, 403},
		{"a login of the domain above", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", "https://example.org") }, 403},
		{"a login under a name that resolves here", "POST", "/serin/api/login/token", func(r *http.Request) { r.Host = "evil.example.org"; r.Header.Set("Origin", "https://evil.example.org") }, 421},
		{"a preflight", "OPTIONS", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.org") }, 403},
		{"a login by a form", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 403},
		{"a login from nowhere", "POST", "/serin/api/login/token", func(r *http.Request) { r.Header.Del("Origin") }, 403},
		{"a logout by another site", "POST", "/serin/api/logout", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.org") }, 403},
		{"a logout by a page of a subdomain, of which only the browser tells", "POST", "/serin/api/logout", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"a logout by a link", "GET", "/serin/api/logout", nil, 404},
		{"a logout by an image of another site", "POST", "/serin/api/logout", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
	} {
		r := httptest.NewRequest(test.method, origin+test.path, strings.NewReader(`{"token":"jane"}`))
		if test.method == http.MethodPost {
			r.Header.Set("Origin", origin)
			r.Header.Set("Content-Type", "application/json")
		}
		if test.change != nil {
			test.change(r)
		}
		answer := s.send(r)
		if answer.StatusCode != test.want {
			t.Errorf("%s: status %d, not %d", test.name, answer.StatusCode, test.want)
		}
		if answer.StatusCode == http.StatusOK && test.path != "/healthz" && !strings.Contains(answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: may be framed", test.name)
		}
	}
	if len(s.cookies) != 0 || len(s.tokens) != 0 {
		t.Errorf("cookies %v, questions %q", s.cookies, s.tokens)
	}
	behind := newSite(t, "/", func(o *login.Options) { o.ForwardedHost = true })
	for host, want := range map[string]int{"serin.example.org": 200, "evil.example.org": 421} {
		r := httptest.NewRequest(http.MethodGet, "http://10.0.0.7/api/login", nil)
		r.Header.Set("X-Forwarded-Host", host)
		if got := behind.send(r).StatusCode; got != want {
			t.Errorf("forwarded for %s: status %d", host, got)
		}
	}
}

func TestOptionsThatWouldShowTokensAreRefused(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"https://serin.example.org", ""},
		{"http://localhost:8080/", ""},
		{"http://127.0.0.1:8080/serin", ""},
		{"http://serin.example.org/", "has to begin with https"},
		{"http://localhost.example.org/", "has to begin with https"},
		{"serin.example.org", "is not a URL such as"},
		{"https://jane:secret@serin.example.org/", "is not a URL such as"},
		{"https://serin.example.org/?a=b", "is not a URL such as"},
		{"", "is not a URL such as"},
	} {
		_, err := login.New(login.Options{URL: test.url, Tokens: true, Keys: session.RandomKey(), Clock: clocktesting.NewFakeClock(time.Now()), Log: logr.Discard()})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.url, err)
		}
	}
	if _, err := login.New(login.Options{URL: origin}); err == nil || !strings.Contains(err.Error(), "no user could log in") {
		t.Errorf("without a way to log in: %v", err)
	}
}
