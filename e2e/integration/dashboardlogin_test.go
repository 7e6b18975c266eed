// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/login"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/session"
	"github.com/serin-dev/serin/e2e/identities"
)

// provider has users whom the API server knows.
var provider *identities.Provider

// site is the dashboard as it is served in the cluster, below a path and behind a proxy that does TLS.
type site struct {
	*scene
	url string

	mu sync.Mutex
	// tokens are those with which it asked the API server.
	tokens []string
}

// serveSite serves the dashboard as a client of the provider.
func (s *scene) serveSite(clientID string) *site {
	s.Helper()
	server := httptest.NewUnstartedServer(nil)
	d := &site{scene: s, url: "https://" + server.Listener.Addr().String() + "/tools/serin/"}
	provider.Add(d.url + "login/callback")
	secret := filepath.Join(s.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(identities.Secret+"\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	made, err := login.New(login.Options{
		URL: d.url, Tokens: true, Keys: session.RandomKey(), Duration: time.Hour, Connect: d.connect, Namespace: s.namespace, Cluster: "test", Clock: clock.RealClock{}, Log: logr.Discard(),
		Metrics: func(token string) (dashboard.Metrics, error) { return cli.MetricsAs(token, plane.Config) },
		Provider: &login.Provider{
			Issuer: provider.Issuer(), ClientID: clientID, SecretFile: secret, Scopes: []string{"openid", "offline_access"}, Name: "the provider",
			HTTP: &http.Client{Transport: provider.Trusting(), Timeout: neverAfter},
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	behind := httptest.NewServer(made.Handler(dashboard.Options{}))
	s.Cleanup(behind.Close)
	to, err := url.Parse(behind.URL)
	if err != nil {
		s.Fatal(err)
	}
	server.Config.Handler = &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ErrorLog: log.New(io.Discard, "", 0), // of browsers that leave
	}
	server.StartTLS()
	s.Cleanup(server.CloseClientConnections)
	s.Cleanup(server.Close)
	return d
}

// connect is how serin dashboard reaches the API server. That the configuration of the tests is that of an administrator must not matter.
func (d *site) connect(token string) (client.WithWatch, error) {
	d.mu.Lock()
	d.tokens = append(d.tokens, token)
	d.mu.Unlock()
	return cli.WatcherAs(token, plane.Config)
}

// token is that with which the API server was asked last.
func (d *site) token() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tokens[len(d.tokens)-1]
}

// visitor is a browser without a screen.
type visitor struct {
	*site
	http *http.Client
	user string
}

func (d *site) visitor(user string) *visitor {
	d.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.Fatal(err)
	}
	return &visitor{d, &http.Client{Transport: provider.Trusting(), Jar: jar, Timeout: neverAfter}, user}
}

// login goes to the provider, gives the password, and comes back.
func (v *visitor) login() *http.Response {
	v.Helper()
	form := v.do(http.MethodGet, v.url+"login/oidc?at="+url.QueryEscape("/rollouts/shop/website"), "")
	at := form.Request.URL
	if at.Path != "/login/username" {
		v.Fatalf("the browser is at %s", at)
	}
	answer, err := v.http.PostForm(at.String(), url.Values{"id": {at.Query().Get("authRequestID")}, "username": {v.user}, "password": {identities.Password}})
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (v *visitor) do(method, address, body string) *http.Response {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, address, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	if method == http.MethodPost {
		at, err := url.Parse(v.url)
		if err != nil {
			v.Fatal(err)
		}
		r.Header.Set("Origin", "https://"+at.Host)
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := v.http.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { answer.Body.Close() })
	return answer
}

// ask is the answer to a question that needs a session.
func (v *visitor) ask() (status int, text string) {
	v.Helper()
	return v.read(v.do(http.MethodGet, v.url+"api/viewer", ""))
}

func (v *visitor) read(answer *http.Response) (int, string) {
	v.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// sealed is the session as the browser keeps it.
func (v *visitor) sealed() string {
	v.Helper()
	at, err := url.Parse(v.url)
	if err != nil {
		v.Fatal(err)
	}
	for _, c := range v.http.Jar.Cookies(at) {
		if c.Name == "__Secure-serin-session" {
			return c.Value
		}
	}
	return ""
}

// mayList waits until the fleet has all Rollouts, or says that the user may not list them.
func (v *visitor) mayList() bool {
	v.Helper()
	stream := v.do(http.MethodGet, v.url+"api/fleet?namespace="+v.namespace, "").Body
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		switch {
		case strings.Contains(lines.Text(), `"complete":true`):
			return true
		case strings.Contains(lines.Text(), `"kind":"forbidden"`):
			return false
		}
	}
	v.Fatalf("the stream has ended: %v", lines.Err())
	return false
}

// plugin runs kubectl traffic with a token and nothing else.
func (v *visitor) plugin(token string, args ...string) (string, bool) {
	v.Helper()
	ca := filepath.Join(v.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, plane.Config.CAData, 0o600); err != nil {
		v.Fatal(err)
	}
	line := append([]string{"--kubeconfig", "/dev/null", "--server", plane.Config.Host, "--certificate-authority", ca, "--token", token, "--namespace", v.namespace, "--cache-dir", v.TempDir()}, args...)
	var out, errs strings.Builder
	status := commands.Run(v.Context(), line, nil, &out, &errs)
	return out.String() + errs.String(), status == 0
}

func TestAUserOfTheProviderHasTheRightsOfTheirToken(t *testing.T) {
	t.Parallel()
	s := fleetOf(t)
	s.bindClusterRole("reader", "view")
	addPromoter(s)
	s.waitRights("reader", may{"watch", "rollouts", ""})
	d := s.serveSite(identities.ClusterClient)
	undecided := func() {
		ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}
		if err := admin.Patch(t.Context(), ro, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":null,"control":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		user                string
		list, pause, decide bool
	}{{"reader", true, false, false}, {"editor", true, true, false}, {"promoter", true, false, true}, {"admin", true, true, true}, {"stranger", false, false, false}} {
		t.Run(test.user, func(t *testing.T) {
			v := (&site{scene: &scene{T: t, namespace: s.namespace, reader: admin}, url: d.url}).visitor(test.user)
			if status, _ := v.ask(); status != http.StatusUnauthorized {
				t.Errorf("before the login: status %d", status)
			}
			answer := v.login()
			if at := answer.Request.URL; answer.StatusCode != http.StatusOK || !strings.HasPrefix(at.String(), d.url) || at.Fragment != "/rollouts/shop/website" {
				_, text := v.read(answer)
				t.Fatalf("after the login: status %d at %s\n%s", answer.StatusCode, at, text)
			}
			if status, text := v.ask(); status != http.StatusOK || !strings.Contains(text, `"user":"`+test.user+`"`) {
				t.Errorf("the viewer: status %d, %s", status, text)
			}
			token := d.token()
			for _, can := range []struct {
				what    string
				may     bool
				page    func() bool
				command []string
			}{
				{"list", test.list, v.mayList, []string{"rollout", "list"}},
				{"pause", test.pause, func() bool { return v.act(`{"action":"Pause","revision":"7f9c6d5b4"}`) }, []string{"rollout", "pause", "website"}},
				{"decide", test.decide, func() bool { return v.act(`{"action":"Abort","revision":"7f9c6d5b4"}`) }, []string{"rollout", "abort", "website"}},
			} {
				undecided()
				said, done := v.plugin(token, can.command...)
				if done != can.may {
					t.Errorf("kubectl traffic with the same token may %s: %t, want %t\n%s", can.what, done, can.may, said)
				}
				undecided()
				if got := can.page(); got != can.may {
					t.Errorf("the page may %s: %t, want %t", can.what, got, can.may)
				}
			}
		})
	}
}

// act presses a button, and says whether the cluster allowed it.
func (v *visitor) act(body string) bool {
	v.Helper()
	status, text := v.read(v.do(http.MethodPost, v.url+"api/rollouts/"+v.namespace+"/website/actions", body))
	if status != http.StatusOK && status != http.StatusForbidden {
		v.Errorf("the server answers %d %s", status, text)
	}
	return status == http.StatusOK
}

func TestATokenForAnotherAudienceIsNoLogin(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	v := s.serveSite(identities.OtherClient).visitor("reader")
	status, text := v.read(v.login())
	if status != http.StatusForbidden || !strings.Contains(text, "the API server does not accept the ID tokens that the provider issues for the client "+identities.OtherClient) || v.sealed() != "" {
		t.Errorf("status %d, %s", status, text)
	}
	if status, _ := v.ask(); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
}

func TestAServiceAccountLogsInWithItsToken(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}}
	s.create(account)
	api, err := kubernetes.NewForConfig(rest.CopyConfig(plane.Config))
	if err != nil {
		t.Fatal(err)
	}
	tokenFor := func(audiences ...string) string {
		made, err := api.CoreV1().ServiceAccounts(s.namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made.Status.Token
	}
	v := s.serveSite(identities.ClusterClient).visitor("")
	for name, token := range map[string]string{"for another audience": tokenFor("vault"), "no token at all": "AAAA"} {
		if answer := v.do(http.MethodPost, v.url+"api/login/token", `{"token":"`+token+`"}`); answer.StatusCode != http.StatusForbidden || v.sealed() != "" {
			t.Errorf("%s: status %d", name, answer.StatusCode)
		}
	}
	if status, text := v.read(v.do(http.MethodPost, v.url+"api/login/token", `{"token":"`+tokenFor()+`"}`)); status != http.StatusOK {
		t.Fatalf("status %d, %s", status, text)
	}
	if status, text := v.ask(); status != http.StatusOK || !strings.Contains(text, "system:serviceaccount:"+s.namespace+":viewer") {
		t.Errorf("status %d, %s", status, text)
	}
	if v.mayList() {
		t.Error("it lists Rollouts without any right")
	}
}

// wideGaps are stretches of a page from its upper edge to its last button in which nothing is.
const wideGaps = `(() => {
	const seen = [...document.querySelectorAll("header a, header button, main h1, main p, main a, main label span, main input, main button")]
		.map(e => ({what: e.innerText || e.name, at: e.getBoundingClientRect()})).filter(s => s.at.height).sort((a, b) => a.at.top - b.at.top);
	const gaps = [];
	let end = 0, before = "the edge";
	for (const s of seen) {
		if (s.at.top - end > 40) gaps.push("nothing is between " + before + " and " + s.what + ", " + Math.round(s.at.top - end) + " pixels");
		if (s.at.bottom > end) [end, before] = [s.at.bottom, s.what];
	}
	return gaps;
})()`

func TestAUserLogsInSeesTheFleetAndLogsOutInTheBrowser(t *testing.T) {
	t.Parallel()
	s := fleetOf(t)
	d := s.serveSite(identities.ClusterClient)
	tab := s.newTab(strings.TrimSuffix(d.url, "/tools/serin/"))
	call(tab, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
	tab.allow(provider.Issuer())
	page := d.url + "#/?namespace=" + s.namespace
	tab.do(chromedp.Navigate(page))
	tab.shows("Log in with the provider")
	tab.accessible("login")
	for _, width := range []int64{390, 360} {
		tab.do(chromedp.EmulateViewport(width, 780))
		for _, gap := range ask[[]string](tab, wideGaps) {
			t.Errorf("at a width of %d pixels: %s", width, gap)
		}
		tab.picture(fmt.Sprint("login-", width))
	}
	tab.do(chromedp.EmulateViewport(1280, 860))
	tab.do(chromedp.SendKeys(chromedp.CSS(`input[name=token]`), "AAAA"))
	tab.press("Log in with the token")
	tab.shows("The API server does not accept this token")
	tab.do(chromedp.Click(chromedp.Search(`//a[contains(., "Log in with")]`)))
	tab.until("the form of the provider", `document.querySelector("#password")`)
	tab.do(chromedp.SendKeys(chromedp.CSS(`#username`), "editor"), chromedp.SendKeys(chromedp.CSS(`#password`), identities.Password), chromedp.Click(chromedp.CSS(`button[type=submit]`)))
	tab.shows("4 in the namespace " + s.namespace)
	tab.until("the page is where it was, and knows the user", `location.href === `+quoted(page)+` && document.querySelector(".who").innerText.includes("editor")`)
	tab.until("scripts see no session", `document.cookie === ""`)
	s.status("checkout", says("WaitingForEvidence", "The evidence is inconclusive."))
	tab.shows("WaitingForEvidence")
	tab.accessible("fleet-logged-in")
	tab.do(chromedp.Click(chromedp.Search(`//button[text()="Log out"]`)))
	tab.shows("Log in with the provider")
	tab.do(chromedp.Navigate(d.url+"#/rollouts/"+s.namespace+"/website"), chromedp.Reload())
	tab.shows("Log in with the provider")
	tab.lacks("60 %")
}
