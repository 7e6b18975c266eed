// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const hidden = "sw0rdfish"

func TestValuesAppearInNoErrorAndNoLog(t *testing.T) {
	var raw, shown bytes.Buffer
	before := log.Writer()
	log.SetOutput(io.MultiWriter(&raw, filter{&shown}))
	t.Cleanup(func() { log.SetOutput(before) })
	w := newWorld()
	c := load(t, "shop")
	for _, f := range c.Raw {
		if f.Name == "values.yaml" {
			f.Data = []byte("web: {tag: " + hidden + "}\nredis: {tag: '7'}\n")
		}
	}
	w.install(t, "shop", map[string]any{"greeting": hidden})
	w.pack(t, c)
	for _, config := range []string{
		hidden, "[" + hidden + "]", "{a: " + hidden, "a: !!int " + hidden, "a: &a " + hidden + "\nb: *c", "\t" + hidden,
		"a: 1\n" + hidden + ": 1\n" + hidden + ": 2", "{web: " + hidden + "}", "{web: {tag: {a: " + hidden + "}}}", "{web: {replicas: " + hidden + "}}",
		"{web: {tag: '" + strings.ToUpper(hidden) + "'}}", "{redis: {replicas: {a: " + hidden + "}}}", "{greeting: \"" + hidden + "\\n\\t- [\"}",
		"{redis: {tag: \"a\\n  - [ " + hidden + "\"}}", "{web: null}", "{redis: {tag: '', password: " + hidden + "}}",
		"{web: {tag: b, password: " + hidden + "}}",
	} {
		p, err := w.releases().Propose(t.Context(), ask("shop", "", config))
		text := fmt.Sprint(err, p.Refused, p.Later, p.Digest)
		var textSb46 strings.Builder
		for _, copied := range p.Copies {
			textSb46.WriteString(copied.GetName())
		}
		text += textSb46.String()
		if strings.Contains(strings.ToLower(text), hidden) {
			t.Errorf("config %q is shown: %s", config, text)
		}
		if err := w.releases().Adopt(t.Context(), ask("shop", "", config+"\n---\n"+config)); err == nil || strings.Contains(strings.ToLower(err.Error()), hidden) {
			t.Errorf("config %q twice: %v", config, err)
		}
	}
	if !strings.Contains(raw.String(), hidden) {
		t.Error("Helm writes no values to the standard logger any more: is the filter still needed?")
	}
	if shown.Len() > 0 {
		t.Errorf("the log shows %s", shown.String())
	}
}

func TestOnlyLinesOfTheWebServerPassTheStandardLogger(t *testing.T) {
	var shown bytes.Buffer
	l := log.New(filter{&shown}, "", log.LstdFlags)
	l.Print("warning: destination for a is a table. Ignoring non-table value (http: " + hidden + ")")
	slog.New(slog.NewTextHandler(filter{&shown}, nil)).Error("lookup", "error", hidden)
	if shown.Len() > 0 {
		t.Error(shown.String())
	}
	l.Print("http: TLS handshake error from 10.0.0.1:1: EOF")
	if !strings.Contains(shown.String(), "TLS handshake") {
		t.Error("a line of the web server is lost")
	}
}

func TestARightThatIsLackingIsNamed(t *testing.T) {
	forbidden := func(message string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"` + message + `"}`
	}
	for _, test := range []struct {
		name, body string
		status     int
		want       string
		invalid    bool
	}{
		{name: "a right", status: 403, body: forbidden(`secrets is forbidden: User \"x\" cannot list resource \"secrets\" in API group \"\"`), invalid: true, want: "spec.release: ServiceAccount serin-canary of namespace shop may not list secrets in namespace shop: create it"},
		{name: "impersonation", status: 403, body: forbidden(`User \"x\" cannot impersonate resource \"serviceaccounts\"`), invalid: true, want: "spec.release: Serin may not act as ServiceAccount serin-canary of namespace shop"},
		{name: "an admission policy", status: 403, body: forbidden("denied: " + hidden), invalid: true, want: "spec.release: an admission policy or a quota does not let ServiceAccount serin-canary of namespace shop list secrets"},
		{name: "no status", status: 403, body: hidden, invalid: true, want: "spec.release: an admission policy or a quota"},
		{name: "an API server that fails", status: 500, body: hidden, want: "the API server answered 500"},
		{name: "an answer that is none", status: 200, body: hidden, want: "a request to the API server failed"},
		{name: "an answer of refusal", status: 409, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"` + hidden + `","details":{"kind":"secrets","name":"a"}}`, want: "the API server refuses secrets/a: Conflict"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if user := r.Header.Get("Impersonate-User"); user != "system:serviceaccount:shop:serin-canary" {
					t.Errorf("acts as %q", user)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			_, err := New(&rest.Config{Host: server.URL}, "serin-canary").Get(t.Context(), "shop", "web")
			var invalid InvalidError
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), hidden) || errors.As(err, &invalid) != test.invalid {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestARenderCanNotWriteAndEndsWithItsCall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) }))
	defer server.Close()
	s, err := impersonate(&rest.Config{Host: server.URL}, "a")(t.Context(), "shop", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := s.client.CoreV1().RESTClient().Verb(method).Resource("secrets").Name("a").Do(t.Context()).Error(); !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v", method, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err = impersonate(&rest.Config{Host: server.URL}, "a")(ended, "shop", false); err != nil {
		t.Fatal(err)
	}
	if err := s.client.CoreV1().RESTClient().Get().Resource("secrets").Do(t.Context()).Error(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzConfig(f *testing.F) {
	w := newWorld()
	w.install(f, "shop", map[string]any{})
	w.pack(f, load(f, "shop"))
	for _, seed := range [][2]string{{"tag: §", "web"}, {"[§", ""}, {"a: {§: §}", "redis/"}, {"---\n§", "/"}, {"web: {replicas: §}", ""}, {"&a [*a, §]", "web/web"}} {
		f.Add([]byte(seed[0]), seed[1])
	}
	f.Fuzz(func(t *testing.T, config []byte, path string) {
		// What stands for a value is nothing that the texts themselves have.
		secretive := bytes.ReplaceAll(config, []byte("§"), []byte(hidden))
		q := ask("shop", path, "")
		q.Config = secretive
		p, err := w.releases().Propose(t.Context(), q)
		if text := fmt.Sprint(err, p.Refused, p.Later, p.Digest); strings.Contains(text, hidden) && !keyed(secretive) {
			t.Errorf("config %q at %q is shown: %s", secretive, path, text)
		}
	})
}

// keyed tells that the secret is, or may be, the name of a value and no value: names are shown.
func keyed(config []byte) bool {
	for _, part := range bytes.Split(config, []byte(hidden))[1:] {
		if rest := bytes.TrimLeft(part, "\"' \t\r\n"); bytes.HasPrefix(rest, []byte(":")) || bytes.Contains(config, []byte("?")) {
			return true
		}
	}
	return false
}
