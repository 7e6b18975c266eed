// SPDX-License-Identifier: Apache-2.0

package identities_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/login"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/session"
	"github.com/serin-dev/serin/e2e/identities"
)

// site is the dashboard below a path and behind TLS, with a provider of its own, as one browser sees it.
type site struct {
	*testing.T
	*identities.Provider
	url  string
	http *http.Client

	mu sync.Mutex
	// token is that with which the API server was asked last.
	token string
}

func serve(t *testing.T, clientID string) *site {
	t.Helper()
	p, err := identities.Start("jane")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	server := httptest.NewUnstartedServer(nil)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, Provider: p, url: "https://" + server.Listener.Addr().String() + "/tools/serin/", http: &http.Client{Transport: p.Trusting(), Jar: jar, Timeout: time.Minute}}
	p.Add(s.url + "login/callback")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(identities.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := login.New(login.Options{
		URL: s.url, Tokens: true, Keys: session.RandomKey(), Duration: time.Hour, Connect: s.connect, Namespace: "shop", Cluster: "test", Clock: clock.RealClock{}, Log: logr.Discard(),
		Provider: &login.Provider{
			Issuer: p.Issuer(), ClientID: clientID, SecretFile: secret, Scopes: []string{"openid", "offline_access"}, Name: "the provider",
			HTTP: &http.Client{Transport: p.Trusting(), Timeout: time.Minute},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = made.Handler(dashboard.Options{})
	server.StartTLS()
	t.Cleanup(server.Close)
	return s
}

// connect is an API server that accepts the ID tokens of one client, as kube-apiserver does.
func (s *site) connect(token string) (client.WithWatch, error) {
	s.mu.Lock()
	s.token = token
	s.mu.Unlock()
	scheme, err := cli.NewScheme("v1alpha4")
	if err != nil {
		return nil, err
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			ctx = oidc.ClientContext(ctx, &http.Client{Transport: s.Trusting()})
			provider, err := oidc.NewProvider(ctx, s.Issuer())
			if err != nil {
				return err
			}
			verified, err := provider.Verifier(&oidc.Config{ClientID: identities.ClusterClient}).Verify(ctx, token)
			if err != nil {
				return apierrors.NewUnauthorized(err.Error())
			}
			if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = verified.Subject
			}
			return nil
		},
	}).Build(), nil
}

func (s *site) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// login goes to the provider, gives the password, and comes back.
func (s *site) login() *http.Response {
	s.Helper()
	at := s.do(http.MethodGet, "login/oidc?at="+url.QueryEscape("/rollouts/shop/website"), "").Request.URL
	if at.Path != "/login/username" {
		s.Fatalf("the browser is at %s", at)
	}
	answer, err := s.http.PostForm(at.String(), url.Values{"id": {at.Query().Get("authRequestID")}, "username": {"jane"}, "password": {identities.Password}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (s *site) do(method, path, body string) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", strings.TrimSuffix(s.url, "/tools/serin/"))
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.http.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (s *site) read(answer *http.Response) (int, string) {
	s.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// ask is the answer to a question that needs a session.
func (s *site) ask() (status int, text string) {
	s.Helper()
	return s.read(s.do(http.MethodGet, "api/viewer", ""))
}

// sealed is the session as the browser keeps it.
func (s *site) sealed() string {
	s.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range s.http.Jar.Cookies(at) {
		if c.Name == "__Secure-serin-session" {
			return c.Value
		}
	}
	return ""
}

func TestAUserOfARealProviderLogsInAndOut(t *testing.T) {
	t.Parallel()
	s := serve(t, identities.ClusterClient)
	if status, _ := s.ask(); status != http.StatusUnauthorized {
		t.Errorf("before the login: status %d", status)
	}
	answer := s.login()
	if at := answer.Request.URL; answer.StatusCode != http.StatusOK || at.String() != s.url+"#/rollouts/shop/website" {
		_, text := s.read(answer)
		t.Fatalf("after the login: status %d at %s\n%s", answer.StatusCode, at, text)
	}
	if status, text := s.ask(); status != http.StatusOK || !strings.Contains(text, `"user":"jane"`) {
		t.Errorf("the viewer: status %d, %s", status, text)
	}
	if status, text := s.read(s.do(http.MethodPost, "api/logout", "{}")); status != http.StatusOK {
		t.Errorf("logout: status %d, %s", status, text)
	}
	if status, _ := s.ask(); status != http.StatusUnauthorized || s.sealed() != "" {
		t.Errorf("after the logout: status %d", status)
	}
	if !slices.Equal(s.Revoked(), []string{"jane"}) {
		t.Errorf("revoked: %q", s.Revoked())
	}
}

// A token of less than a minute is refreshed with each request, until the provider ends the session.
func TestARealProviderRefreshesSessionsUntilItEndsThem(t *testing.T) {
	t.Parallel()
	s := serve(t, identities.ClusterClient)
	s.Last(50 * time.Second)
	s.login()
	for range 3 {
		before, token := s.sealed(), s.asked()
		if status, text := s.ask(); status != http.StatusOK || !strings.Contains(text, `"user":"jane"`) {
			t.Fatalf("status %d, %s", status, text)
		}
		if s.sealed() == before || s.asked() == token {
			t.Error("the session was not refreshed")
		}
	}
	if err := s.TerminateSession(t.Context(), "jane", identities.ClusterClient); err != nil {
		t.Fatal(err)
	}
	if status, text := s.ask(); status != http.StatusUnauthorized || !strings.Contains(text, "Your session has ended") || s.sealed() != "" {
		t.Errorf("after the end at the provider: status %d, %s", status, text)
	}
}

func TestAnExpiredTokenOfARealProviderIsNoSession(t *testing.T) {
	t.Parallel()
	s := serve(t, identities.ClusterClient)
	s.Last(2 * time.Second)
	s.login()
	if err := s.TerminateSession(t.Context(), "jane", identities.ClusterClient); err != nil {
		t.Fatal(err)
	}
	token := s.asked()
	deadline := time.Now().Add(time.Minute)
	refused := func() bool {
		return s.do(http.MethodPost, "api/login/token", `{"token":"`+token+`"}`).StatusCode == http.StatusForbidden
	}
	for !refused() {
		if time.Now().After(deadline) {
			t.Fatal("a token of two seconds still logs in")
		}
	}
	if status, _ := s.ask(); status != http.StatusUnauthorized {
		t.Errorf("with an expired token: status %d", status)
	}
}

func TestATokenOfARealProviderForAnotherAudienceIsNoLogin(t *testing.T) {
	t.Parallel()
	s := serve(t, identities.OtherClient)
	status, text := s.read(s.login())
	if status != http.StatusForbidden || !strings.Contains(text, "the API server does not accept the ID tokens that the provider issues for the client "+identities.OtherClient) || s.sealed() != "" {
		t.Errorf("status %d, %s", status, text)
	}
}
