// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/analysis/egress"
)

// once makes one attempt.
func once(t *testing.T, secrets client.Reader, policy egress.Policy, o Options, r Request) answer {
	t.Helper()
	return newCaller(secrets, policy, o.withDefaults()).call(t.Context(), "shop", r)
}

func TestWhatAnAnswerMeans(t *testing.T) {
	for name, test := range map[string]struct {
		code    int
		outcome Outcome
		message string
	}{
		"200 approves":                      {200, Delivered, "answered 200 OK"},
		"201 approves":                      {201, Delivered, "answered 201 Created"},
		"204 approves":                      {204, Delivered, "answered 204 No Content"},
		"299 approves":                      {299, Delivered, "answered 299"},
		"202 means not yet":                 {202, NotYet, "answered 202 Accepted"},
		"425 means not yet":                 {425, NotYet, "answered 425 Too Early"},
		"403 refuses for good":              {403, Refused, "answered 403 Forbidden"},
		"401 may be fixed":                  {401, Failed, "answered 401 Unauthorized"},
		"404 may be fixed":                  {404, Failed, "answered 404 Not Found"},
		"429 is tried again":                {429, Failed, "answered 429 Too Many Requests"},
		"500 is tried again":                {500, Failed, "answered 500 Internal Server Error"},
		"a status that no standard defines": {799, Failed, "answered 799"},
	} {
		t.Run(name, func(t *testing.T) {
			e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.code)
				if test.code != http.StatusNoContent {
					fmt.Fprint(w, "confidential")
				}
			})
			got := once(t, cluster(), loopback, Options{}, question("q", e.URL))
			if got.outcome != test.outcome || got.message != test.message {
				t.Errorf("got %s %q", got.outcome, got.message)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	target := listen(t, nil)
	for _, code := range []int{301, 302, 303, 307, 308} {
		e := listen(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, code) })
		got := once(t, cluster(), loopback, Options{}, question("q", e.URL))
		if got.outcome != Failed || !strings.Contains(got.message, "redirects are not followed") || strings.Contains(got.message, target.URL) {
			t.Errorf("%d: %+v", code, got)
		}
	}
	if heard := target.heard(); len(heard) != 0 {
		t.Errorf("followed: %+v", heard)
	}
}

func TestAHugeAnswerIsNotRead(t *testing.T) {
	const huge = 100 << 20
	var written atomic.Int64
	ended := make(chan struct{})
	e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for chunk := make([]byte, 64<<10); written.Load() < huge; {
			n, err := w.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	if got := once(t, cluster(), loopback, Options{}, question("q", e.URL)); got.outcome != Delivered {
		t.Errorf("got %+v", got)
	}
	receive(t, "the end of the answer", ended)
	if n := written.Load(); n > 32<<20 { // what is under way is in the buffers of the sockets
		t.Errorf("%d bytes were taken", n)
	}
}

func TestAnAnswerThatDripsIsCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		say  string
		want Outcome
	}{
		"nothing at all":              {"", Failed},
		"a status without an end":     {"HTTP/1.1 2", Failed},
		"headers without an end":      {"HTTP/1.1 200 OK\r\nA: b\r\nC", Failed},
		"a body without an end":       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Delivered},
		"informational ones for ever": {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 3), Failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCaller(cluster(), loopback, Options{Timeout: time.Minute}.withDefaults())
				c.http.Transport = &http.Transport{DialContext: saying(test.say)}
				begun := time.Now()
				got := c.call(t.Context(), "shop", question("q", "http://hooks.example"))
				if got.outcome != test.want || test.want == Failed && got.message != "no answer within 1m0s" {
					t.Errorf("got %+v", got)
				}
				if took := time.Since(begun); took != time.Minute {
					t.Errorf("cut off after %s", took)
				}
			})
		})
	}
}

// saying connects to a server that says some bytes and then waits.
func saying(bytes string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }() // the client has left
			if _, err := server.Read(make([]byte, 4096)); err != nil {
				return
			}
			if _, err := io.WriteString(server, bytes); err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, server) // until the client leaves
		}()
		return client, nil
	}
}

// speak is a server that says some bytes to each caller and then closes.
func speak(tb testing.TB, bytes string) (address string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() }) // the test is over
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }() // whether the peer hears of it is its own affair
				buffer := make([]byte, 4096)
				if _, err := c.Read(buffer); err != nil {
					return
				}
				_, _ = c.Write([]byte(bytes)) // as is whether it takes them all
			}()
		}
	}()
	return l.Addr().String()
}

func TestHeadersWithoutEndAreNotTaken(t *testing.T) {
	address := speak(t, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Filler: "+strings.Repeat("a", 1000)+"\r\n", 200)+"\r\n")
	if got := once(t, cluster(), loopback, Options{}, question("q", "http://"+address)); got.outcome != Failed {
		t.Errorf("got %+v", got)
	}
}

func TestRequestsAreSignedWithTheKeyAsItIsNow(t *testing.T) {
	e := listen(t, nil)
	api := cluster(secret("shop", "key", "Jefe"), secret("else", "key", "other"))
	r := signed(question("q", e.URL))
	r.Body = []byte("what do ya want for nothing?") // RFC 4231, test case 2
	if got := once(t, api, loopback, Options{}, r); got.outcome != Delivered {
		t.Fatalf("got %+v", got)
	}
	if err := api.Update(t.Context(), secret("shop", "key", "rotated")); err != nil {
		t.Fatal(err)
	}
	if got := once(t, api, loopback, Options{}, r); got.outcome != Delivered {
		t.Fatalf("got %+v", got)
	}
	heard := e.heard()
	const want = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
	if got := heard[0].header.Get("Serin-Signature"); got != want {
		t.Errorf("signed %s", got)
	}
	if got := heard[1].header.Get("Serin-Signature"); got == want || got != sign([]byte("rotated"), r.Body) {
		t.Errorf("signed %s with the new key", got)
	}
}

func TestWithoutItsKeyARequestIsNotSent(t *testing.T) {
	e := listen(t, nil)
	forbidden := interceptor.NewClient(cluster(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "hooks", errors.New("no rule"))
		},
	})
	broken := interceptor.NewClient(cluster(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewInternalError(errors.New("etcd 10.0.0.7:2379 is away"))
		},
	})
	late := interceptor.NewClient(cluster(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	elsewhere := secret("shop", "key", "x")
	elsewhere.Annotations["serin.dev/allowed-hosts"] = "hooks.example.org"
	for name, test := range map[string]struct {
		secrets client.Reader
		want    string
	}{
		"it is for another host": {
			cluster(elsewhere),
			"endpoint.signingKeyRef: the Secret hooks may not be sent to 127.0.0.1; add the host to its annotation serin.dev/allowed-hosts",
		},
		"the operator may not read it": {
			forbidden,
			"endpoint.signingKeyRef: Serin is not allowed to read it: create a Role in shop that allows get on the Secret hooks, and a RoleBinding for the ServiceAccount serin-system/serin",
		},
		"there is none":                {cluster(), "endpoint.signingKeyRef: the Secret hooks does not exist; create it"},
		"it is in another namespace":   {cluster(secret("else", "key", "x")), "endpoint.signingKeyRef: the Secret hooks does not exist; create it"},
		"the key is missing":           {cluster(secret("shop", "kye", "x")), `endpoint.signingKeyRef: the Secret hooks has no key "key", or an empty one; add it`},
		"the key is empty":             {cluster(secret("shop", "key", "")), `endpoint.signingKeyRef: the Secret hooks has no key "key", or an empty one; add it`},
		"the API server is in trouble": {broken, "endpoint.signingKeyRef: the Secret hooks could not be read from the API"},
		"the API server is slow":       {late, "no answer within 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{ServiceAccount: "serin-system/serin", Timeout: 200 * time.Millisecond}
			got := once(t, test.secrets, loopback, o, signed(question("q", e.URL)))
			if got.outcome != Failed || got.message != test.want {
				t.Errorf("got %s %q", got.outcome, got.message)
			}
		})
	}
	if heard := e.heard(); len(heard) != 0 {
		t.Errorf("sent without a signature: %+v", heard)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	e := httptest.NewUnstartedServer(status(200))
	e.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are what is tested
	e.StartTLS()
	t.Cleanup(e.Close)
	roots := x509.NewCertPool()
	roots.AddCert(e.Certificate())
	_, port, err := net.SplitHostPort(e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		roots   *x509.CertPool
		url     string
		outcome Outcome
		message string
	}{
		"a trusted one":        {roots, e.URL, Delivered, "answered 200 OK"},
		"an unknown authority": {x509.NewCertPool(), e.URL, Failed, "the certificate is signed by an authority that is not trusted"},
		"another name":         {roots, "https://localhost:" + port, Failed, "the certificate is for another host name"},
		"no TLS at all":        {roots, "https://" + speak(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), Failed, "no TLS connection could be made"},
	} {
		t.Run(name, func(t *testing.T) {
			got := once(t, cluster(), loopback, Options{Roots: test.roots}, question("q", test.url))
			if got.outcome != test.outcome || got.message != test.message {
				t.Errorf("got %s %q", got.outcome, got.message)
			}
		})
	}
}

func TestURLsThatAreNotCalled(t *testing.T) {
	for _, address := range []string{
		"", "ftp://example.org", "file:///etc/passwd", "http://", "http:///x", "http://user:secret@127.0.0.1/", "http://[::1", "http://a b/", "gopher://127.0.0.1:70/",
	} {
		got := once(t, cluster(), loopback, Options{}, question("q", address))
		if got.outcome != Failed || got.message != "endpoint.url: "+egress.ErrURL.Error() {
			t.Errorf("%q: %s %q", address, got.outcome, got.message)
		}
	}
}

func TestAnIDThatIsNoHeaderIsNotSent(t *testing.T) {
	e := listen(t, nil)
	got := once(t, cluster(), loopback, Options{}, question("q\r\nX: y", e.URL))
	if got.outcome != Failed || len(e.heard()) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestHowLongAnEndpointWantsToBeLeftAlone(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "0": 0, "-1": 0, "1.5": 0, "70000": 0, "Wed, 21 Oct 2026 07:28:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("%q: %s", value, got)
		}
	}
}

// messages is every message that an attempt can give, whatever the endpoint says.
var messages = regexp.MustCompile(`^(answered \d{3}( [A-Za-z' -]+)?(: redirects are not followed; put the final address into endpoint\.url)?` +
	`|no answer within .*|no HTTP answer|the connection was .*)$`)

func FuzzNoWordOfTheEndpointGetsIntoAMessage(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
	f.Add("HTTP/1.1 500 confidential\r\n\r\n")
	f.Add("HTTP/1.1 abc confidential\r\n\r\n")
	f.Add("confidential\r\n\r\n")
	f.Add("HTTP/1.1 302 x\r\nLocation: http://confidential/\r\n\r\n")
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: confidential\r\n\r\n")
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: confidential\r\n\r\n")
	f.Fuzz(func(t *testing.T, said string) {
		got := once(t, cluster(), loopback, Options{Timeout: time.Second}, question("q", "http://"+speak(t, said)))
		if !messages.MatchString(got.message) {
			t.Errorf("said %q, got %q", said, got.message)
		}
	})
}

func TestCausesThatHaveWords(t *testing.T) {
	inside := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://hooks.example/confidential", Err: &net.OpError{Op: "dial", Err: err}}
	}
	system := func(errno syscall.Errno) error { return inside(os.NewSyscallError("connect", errno)) }
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no such name":              {inside(&net.DNSError{Err: "confidential", Name: "confidential", IsNotFound: true}), "the host name does not exist"},
		"a name server in trouble":  {inside(&net.DNSError{Err: "confidential", IsTemporary: true}), "the host name could not be resolved"},
		"a name server that sleeps": {inside(&net.DNSError{Err: "confidential", IsTimeout: true}), "no answer within 10s"},
		"refused":                   {system(syscall.ECONNREFUSED), "the connection was refused"},
		"no route":                  {system(syscall.EHOSTUNREACH), "there is no route to the host"},
		"no network":                {system(syscall.ENETUNREACH), "there is no route to the host"},
		"reset":                     {system(syscall.ECONNRESET), "the connection was closed before there was an answer"},
		"closed":                    {inside(io.EOF), "the connection was closed before there was an answer"},
		"an expired certificate": {
			inside(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "confidential"}}),
			"the certificate has expired or is not valid yet",
		},
		"a certificate for something else": {
			inside(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}}),
			"the certificate could not be verified",
		},
		"a handshake that failed": {inside(tls.AlertError(40)), "no TLS connection could be made"},
		"anything else":           {inside(errors.New("confidential")), "no HTTP answer"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &caller{options: Options{}.withDefaults()}
			if got := c.describe(test.err); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestMessagesFitIntoTheStatus(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("ä", 200), strings.Repeat("x", MaxMessage), strings.Repeat("x", MaxMessage+1), strings.Repeat("漢", 100)} {
		got := shorten(text)
		if len(got) > MaxMessage || !utf8.ValidString(got) || len(text) <= MaxMessage && got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
