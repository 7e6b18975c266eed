// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/api/v1alpha1"
)

var (
	website  = types.NamespacedName{Namespace: "shop", Name: "website"}
	loopback = egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
)

// waitLimit is how long a test waits for what must happen.
const waitLimit = time.Minute

// fixture is a Sender at work.
type fixture struct {
	*Sender
	t     *testing.T
	clock *clocktesting.FakeClock
	// stop ends the Sender, as the end of the process does.
	stop func()
}

func play(t *testing.T, secrets client.Reader, policy egress.Policy, o Options) *fixture {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	s := New(secrets, policy, clock, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &fixture{Sender: s, t: t, clock: clock, stop: stop}
}

// await lets time pass in steps until a condition holds.
func (s *fixture) await(what string, step time.Duration, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(waitLimit); !holds(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: did not happen; %+v", what, s.Results(website))
		}
		select {
		case <-s.Changed():
		case <-time.After(2 * time.Millisecond):
		}
		s.clock.Step(step)
	}
}

// change lets time pass in steps until a Rollout is notified of.
func (s *fixture) change(step time.Duration) types.NamespacedName {
	s.t.Helper()
	for deadline := time.After(waitLimit); ; s.clock.Step(step) {
		select {
		case c := <-s.Changed():
			return c.Object
		case <-time.After(2 * time.Millisecond):
		case <-deadline:
			s.t.Fatalf("no change is told; %+v", s.Results(website))
		}
	}
}

// outcome waits until a request has an outcome.
func (s *fixture) outcome(id string, want Outcome) Result {
	s.t.Helper()
	s.await(id+" "+want.String(), time.Second, func() bool { return s.Results(website)[id].Outcome == want })
	return s.Results(website)[id]
}

// received is a request as an endpoint got it.
type received struct {
	method, path, body string
	header             http.Header
}

// endpoint records its requests and answers as the test says.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	received []received
}

func listen(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(e.record(t, answer))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) record(t *testing.T, answer http.HandlerFunc) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		e.received = append(e.received, received{method: r.Method, path: r.URL.String(), body: string(body), header: r.Header})
		e.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}
}

func (e *endpoint) heard() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.received...)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func question(id, url string) Request {
	return Request{ID: id, Endpoint: v1alpha1.Endpoint{URL: url}, ContentType: "application/json", Body: []byte(`{"id":"` + id + `"}`)}
}

// signed has a request signed with the key "key" of the Secret "hooks".
func signed(r Request) Request {
	r.Endpoint.SigningKeyRef = &v1alpha1.SecretKeyReference{Name: "hooks", Key: "key"}
	return r
}

// cluster is an API server with Secrets.
func cluster(secrets ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithObjects(secrets...).Build()
}

// secret is one of the name that signed refers to.
func secret(namespace, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hooks", Annotations: map[string]string{v1alpha1.AnnotationAllowedHosts: "127.0.0.1"}}, Data: map[string][]byte{key: []byte(value)}}
}
