// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/controllers/notify/payload"
)

// genuine is the function that the page shows, letter by letter.
func genuine(key, body []byte, header string) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(header, "sha256="))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}

// blocks returns the page's blocks of code in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "hooks-and-notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		list = append(list, match[1])
	}
	if len(list) == 0 {
		t.Fatalf("the page has no block of %s", language)
	}
	return list
}

// page is what its examples in YAML say.
type page struct {
	rollout v1alpha1.Rollout
	secret  corev1.Secret
	role    rbacv1.Role
	binding rbacv1.RoleBinding
}

func readPage(t *testing.T) page {
	t.Helper()
	all := blocks(t, "yaml")
	access := strings.Split(all[1], "---\n")
	var p page
	for text, into := range map[string]any{all[0]: &p.rollout, access[0]: &p.secret, access[1]: &p.role, access[2]: &p.binding} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
	}
	p.secret.Data = map[string][]byte{}
	for key, value := range p.secret.StringData { // as the API server stores it
		p.secret.Data[key] = []byte(value)
	}
	return p
}

func TestThePagesRoleAllowsTheOneSecretAndNoMore(t *testing.T) {
	p := readPage(t)
	hook := p.rollout.Spec.Hooks[0]
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{hook.Endpoint.SigningKeyRef.Name}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(want, p.role.Rules); diff != "" {
		t.Error(diff)
	}
	if p.binding.RoleRef.Name != p.role.Name || p.binding.Namespace != p.role.Namespace || p.role.Namespace != p.rollout.Namespace {
		t.Errorf("%+v binds something else than %+v", p.binding, p.role)
	}
}

func TestThePagesExampleIsAskedAndItsSignatureIsGenuine(t *testing.T) {
	p := readPage(t)
	hook := p.rollout.Spec.Hooks[0]
	key := p.secret.Data[hook.Endpoint.SigningKeyRef.Key]
	e := listen(t, nil)
	if u, err := url.Parse(hook.Endpoint.URL); err != nil || p.secret.Annotations[v1alpha1.AnnotationAllowedHosts] != u.Hostname() {
		t.Errorf("the page's Secret may go to %v and not to %v: %v", p.secret.Annotations, u, err)
	}
	p.secret.Annotations[v1alpha1.AnnotationAllowedHosts] = "127.0.0.1"
	hook.Endpoint.URL = e.URL
	question, err := payload.Hook(
		payload.Rollout{Namespace: p.rollout.Namespace, Name: p.rollout.Name, UID: "1", Service: p.rollout.Spec.Service},
		payload.Question{ID: "tests-6c8f9d7b5-1", Hook: hook.Name, When: hook.When, Revision: "6c8f9d7b5", Step: &payload.Step{Index: 1, Of: 2, Weight: 50}},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := once(t, cluster(&p.secret), loopback, Options{}, Request{
		ID: "tests-6c8f9d7b5-1", UID: "1", Endpoint: hook.Endpoint, ContentType: question.ContentType, Body: question.Body,
	})
	if got.outcome != Delivered {
		t.Fatalf("got %+v", got)
	}
	heard := e.heard()[0]
	if !genuine(key, []byte(heard.body), heard.header.Get("Serin-Signature")) {
		t.Error("the page's function does not know the signature")
	}
	for name, forged := range map[string]bool{
		"another body": genuine(key, []byte(heard.body+" "), heard.header.Get("Serin-Signature")),
		"another key":  genuine([]byte("x"), []byte(heard.body), heard.header.Get("Serin-Signature")),
		"no signature": genuine(key, []byte(heard.body), ""),
	} {
		if forged {
			t.Errorf("%s is taken for genuine", name)
		}
	}
}

func TestThePageShowsTheFunctionThatIsTested(t *testing.T) {
	source, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if shown := blocks(t, "go")[0]; !strings.Contains(string(source), shown) {
		t.Errorf("this file has another one than\n%s", shown)
	}
}

func TestThePagesCommandChecksASignature(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		testenv.Missing(t, "the page's command uses openssl, which is not installed", "on Debian: apt-get install openssl")
	}
	body, dir := []byte(`{"kind":"HookRequest"}`), t.TempDir()
	for said, want := range map[string]string{string(body): "genuine\n", string(body) + " ": ""} {
		if err := os.WriteFile(filepath.Join(dir, "body"), []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "sh", "-c", blocks(t, "sh")[0])
		command.Dir = dir
		command.Env = append(os.Environ(), "KEY=a key", "SIGNATURE="+sign([]byte("a key"), body))
		out, err := command.Output()
		if string(out) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", said, out, err)
		}
	}
}

func TestThePagesAnswers(t *testing.T) {
	for code, want := range map[int]Outcome{200: Delivered, 299: Delivered, 202: NotYet, 425: NotYet, 403: Refused, 404: Failed, 302: Failed, 503: Failed} {
		e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "thrown away")
		})
		if got := once(t, cluster(), loopback, Options{}, question("q", e.URL)); got.outcome != want {
			t.Errorf("%d: %s", code, got.outcome)
		}
	}
}
