// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

const hidden = "sw0rdfish"

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
		{name: "a right", status: 403, body: forbidden(`secrets is forbidden: User \"x\" cannot list resource \"secrets\" in API group \"\"`), invalid: true, want: "spec.release: ServiceAccount serin-canary of namespace shop may not list secrets in namespace shop: create the account"},
		{name: "impersonation", status: 403, body: forbidden(`User \"x\" cannot impersonate resource \"serviceaccounts\"`), invalid: true, want: "spec.release: Serin is not allowed to impersonate ServiceAccount serin-canary of namespace shop"},
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
			_, err := New(&rest.Config{Host: server.URL}, Options{Account: account}).Get(t.Context(), "shop", "web")
			var invalid releases.InvalidError
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), hidden) || errors.As(err, &invalid) != test.invalid {
				t.Errorf("%v", err)
			}
		})
	}
}

// A user may put annotations of megabytes on Secrets that look like records.
func TestAListOfRecordsThatIsTooLargeIsNotKept(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"`)
		part := bytes.Repeat([]byte("a"), 1<<20)
		for range 4 * maxRecords / len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}}]}`)
	}))
	defer server.Close()
	_, err := New(&rest.Config{Host: server.URL}, Options{Account: account}).Get(t.Context(), "shop", "web")
	if err == nil || !strings.HasPrefix(err.Error(), "the API server's answer has more than 8 MiB") {
		t.Error(err)
	}
}

func TestAProcessCanNotChooseWhoItActsAs(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer server.Close()
	r := New(&rest.Config{Host: server.URL, BearerToken: "managers"}, Options{Account: account})
	handler, err := gateway(r.As("shop"), r.guard(t.Context(), "shop"))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/api/v1/namespaces/shop/secrets/a?fieldManager=helm", strings.NewReader("{}"))
	for name, value := range map[string]string{
		"Impersonate-User": "admin", "Impersonate-Group": "system:masters", "Impersonate-Extra-A": "b", "Impersonate-Uid": "1", "Authorization": "Bearer other",
		"X-Remote-User": "admin", "X-Forwarded-For": "10.0.0.1", "Cookie": "a=b", "Content-Type": "application/merge-patch+json", "Accept": "application/json",
	} {
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK || got.Method != http.MethodPatch || got.URL.String() != "/api/v1/namespaces/shop/secrets/a?fieldManager=helm" {
		t.Fatalf("%d %s %s", answer.Code, got.Method, got.URL)
	}
	got.Header.Del("User-Agent")
	want := http.Header{
		"Impersonate-User": {"system:serviceaccount:shop:" + account}, "Authorization": {"Bearer managers"},
		"Content-Type": {"application/merge-patch+json"}, "Accept": {"application/json"}, "Content-Length": {"2"}, "Accept-Encoding": {"gzip"},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARenderCanNotWrite(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) }))
	defer server.Close()
	r := New(&rest.Config{Host: server.URL}, Options{Account: account})
	guard := r.guard(t.Context(), "shop")
	guard.ReadOnly = true
	handler, err := gateway(r.As("shop"), guard)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, "/api/v1/namespaces/shop/secrets/a", nil))
		if answer.Code != http.StatusBadGateway {
			t.Errorf("%s: %d", method, answer.Code)
		}
	}
}

// An API server that refuses a request before it has read it all gets no more of it. The process
// sees the answer, and stops writing too: neither of both may then wait for the other.
func TestAnAnswerEndsARequestThatWasNotReadWhole(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "no")
	})
	server := httptest.NewUnstartedServer(refuse)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	r := New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}}, Options{Account: account})
	handler, err := gateway(r.As("shop"), r.guard(t.Context(), "shop"))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer serve(ours, handler)()
	transport := &http.Transport{
		Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) { return theirs, nil },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	unfinished, end := io.Pipe()
	defer func() { _ = end.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/api/v1/namespaces/shop/secrets", unfinished)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusForbidden || string(text) != "no" {
		t.Errorf("%d %q, %v", answer.StatusCode, text, err)
	}
}
