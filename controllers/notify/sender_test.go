// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/poll/fair"
)

func TestARequestIsDeliveredOnceHoweverOftenItIsHandedOver(t *testing.T) {
	e := listen(t, nil)
	s := play(t, cluster(), loopback, Options{UserAgent: "serin/1.2.3"})
	for range 3 {
		s.Send(website, question("q1", e.URL+"/hook?a=b"))
	}
	if got := s.outcome("q1", Delivered); got.Attempts != 1 || got.Message != "answered 200 OK" {
		t.Errorf("got %+v", got)
	}
	s.Send(website, question("q1", e.URL+"/hook?a=b"))
	s.Send(website, question("q1", e.URL+"/elsewhere")) // settled is settled
	s.Send(website, question("q2", e.URL+"/hook?a=b"))
	s.outcome("q2", Delivered)
	heard := e.heard()
	if len(heard) != 2 {
		t.Fatalf("called %d times: %+v", len(heard), heard)
	}
	first := heard[0]
	if first.method != http.MethodPost || first.path != "/hook?a=b" || first.body != `{"id":"q1"}` {
		t.Errorf("got %+v", first)
	}
	for header, want := range map[string]string{
		"Idempotency-Key": "q1", "Content-Type": "application/json", "User-Agent": "serin/1.2.3", "Serin-Signature": "",
	} {
		if got := first.header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func TestTheKeyTellsRolloutsApart(t *testing.T) {
	e := listen(t, nil)
	s := play(t, cluster(), loopback, Options{})
	names := map[types.UID]types.NamespacedName{"1": website, "2": {Namespace: "shop-staging", Name: "website"}}
	for uid, name := range names {
		r := question("tests-6c8f9d7b5", e.URL)
		r.UID = uid
		s.Send(name, r)
	}
	s.await("both", 0, func() bool { return len(e.heard()) == 2 })
	got := map[string]bool{}
	for _, h := range e.heard() {
		got[h.header.Get("Idempotency-Key")] = true
	}
	if diff := cmp.Diff(map[string]bool{"1/tests-6c8f9d7b5": true, "2/tests-6c8f9d7b5": true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheOwnerIsToldWhenTheOutcomeChangesAndOnlyThen(t *testing.T) {
	var calls atomic.Int32
	e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= 5 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	s := play(t, cluster(), loopback, Options{})
	s.Send(website, question("q", e.URL))
	// Time stands still until the first is received: what is not received yet is
	// told together with what changes meanwhile.
	for _, want := range []struct {
		step    time.Duration
		outcome Outcome
	}{{0, Failed}, {time.Second, Delivered}} {
		if got := s.change(want.step); got != website {
			t.Errorf("notified of %v", got)
		}
		if got := s.Results(website)["q"]; got.Outcome != want.outcome {
			t.Errorf("notified of %+v, want %v", got, want.outcome)
		}
	}
}

func TestNoChangeIsLostWhileItsReceiverIsAway(t *testing.T) {
	e := listen(t, nil)
	s := play(t, cluster(), loopback, Options{})
	want := map[types.NamespacedName]bool{}
	for i := range 50 {
		name := types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)}
		want[name] = true
		s.Send(name, question("q", e.URL))
	}
	for deadline := time.After(waitLimit); len(want) > 0; {
		select {
		case c := <-s.Changed():
			delete(want, c.Object)
		case <-deadline:
			t.Fatalf("not notified of %v", want)
		}
	}
}

func TestNotYetIsAskedAgainUntilItIsApproved(t *testing.T) {
	var calls atomic.Int32
	e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1:
			w.WriteHeader(http.StatusAccepted)
		case 2:
			w.WriteHeader(http.StatusTooEarly)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	s := play(t, cluster(), loopback, Options{})
	s.Send(website, question("q", e.URL))
	s.outcome("q", NotYet)
	if got := s.outcome("q", Delivered); got.Attempts != 3 || got.Message != "answered 204 No Content" {
		t.Errorf("got %+v", got)
	}
	for _, h := range e.heard() {
		if h.header.Get(HeaderKey) != "q" || h.body != `{"id":"q"}` {
			t.Errorf("called with something else: %+v", h)
		}
	}
}

func TestAnEndpointThatIsDownIsTriedUntilItIsUp(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := port.Addr().String()
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	s := play(t, cluster(), loopback, Options{})
	s.Send(website, question("q", "http://"+address))
	if got := s.outcome("q", Failed); got.Message != "the connection was refused" {
		t.Errorf("got %+v", got)
	}
	s.await("a third attempt", time.Second, func() bool { return s.Results(website)["q"].Attempts >= 3 })
	e := &endpoint{}
	e.Server = httptest.NewUnstartedServer(e.record(t, nil))
	if e.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	e.Start()
	defer e.Close()
	s.outcome("q", Delivered)
	if heard := e.heard(); len(heard) != 1 || heard[0].header.Get(HeaderKey) != "q" {
		t.Errorf("called with %+v", heard)
	}
}

func TestAfterARestartTheSameIsSentWithTheSameIdentity(t *testing.T) {
	var calls atomic.Int32
	e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	before := play(t, cluster(), loopback, Options{})
	before.Send(website, question("q", e.URL))
	before.outcome("q", Failed)
	before.stop()
	after := play(t, cluster(), loopback, Options{})
	if got := after.Results(website); len(got) != 0 {
		t.Errorf("knows of %v", got)
	}
	after.Send(website, question("q", e.URL))
	after.outcome("q", Delivered)
	heard := e.heard()
	first, last := heard[0], heard[len(heard)-1]
	if diff := cmp.Diff(first.body, last.body); diff != "" || first.header.Get(HeaderKey) != last.header.Get(HeaderKey) {
		t.Errorf("not recognisable as the same: %+v %+v", first, last)
	}
}

// blocker is an endpoint that answers when the test says so.
type blocker struct {
	*endpoint
	arrived         chan string
	release         chan struct{}
	cancelledByPeer chan string

	counting      sync.Mutex
	running, most int
}

// count keeps how many requests run at once, and the most there ever were.
func (b *blocker) count(more int) {
	b.counting.Lock()
	defer b.counting.Unlock()
	b.running += more
	b.most = max(b.most, b.running)
}

func block(t *testing.T) *blocker {
	t.Helper()
	b := &blocker{arrived: make(chan string, 100), release: make(chan struct{}), cancelledByPeer: make(chan string, 100)}
	b.endpoint = listen(t, func(_ http.ResponseWriter, r *http.Request) {
		b.count(1)
		defer b.count(-1)
		id := r.Header.Get(HeaderKey)
		b.arrived <- id
		select {
		case <-b.release:
		case <-r.Context().Done():
			b.cancelledByPeer <- id
		}
	})
	return b
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waitLimit):
		t.Fatalf("%s: did not happen", what)
		panic("unreachable")
	}
}

func TestASlowEndpointDelaysNoOther(t *testing.T) {
	slow, quick := block(t), listen(t, nil)
	s := play(t, cluster(), loopback, Options{Slots: fair.NewSlots(fair.Limits{Slots: 5}), PerHost: 2, Timeout: time.Minute})
	const many = 10
	for i := range many {
		s.Send(website, question("slow-"+strconv.Itoa(i), slow.URL))
	}
	receive(t, "a slow one", slow.arrived)
	receive(t, "another slow one", slow.arrived)
	for i := range many {
		id := "quick-" + strconv.Itoa(i)
		s.Send(website, question(id, quick.URL))
		s.outcome(id, Delivered)
	}
	close(slow.release)
	for i := range many {
		s.outcome("slow-"+strconv.Itoa(i), Delivered)
	}
	slow.counting.Lock()
	defer slow.counting.Unlock()
	if slow.most != 2 {
		t.Errorf("%d at once at one host", slow.most)
	}
	if len(s.gate.lanes) != 0 {
		t.Errorf("lanes are left over: %v", s.gate.lanes)
	}
}

func TestWhatIsForgottenIsCancelledAndMakesRoomForOthers(t *testing.T) {
	b := block(t)
	s := play(t, cluster(), loopback, Options{PerHost: 1, Timeout: time.Minute})
	s.Send(website, question("runs", b.URL))
	receive(t, "the first", b.arrived)
	s.Send(website, question("waits", b.URL))
	s.Send(website, question("stays", b.URL))
	s.await("both wait", 0, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		l := s.gate.lanes["shop/"+hostOf(b.URL)]
		return l != nil && len(l.waiting) == 2
	})
	s.Keep(website, []string{"stays", "unknown"})
	if id := receive(t, "the end of the first", b.cancelledByPeer); id != "runs" {
		t.Errorf("%s was cancelled", id)
	}
	if id := receive(t, "the next", b.arrived); id != "stays" {
		t.Errorf("%s is sent", id)
	}
	close(b.release)
	s.outcome("stays", Delivered)
	if diff := cmp.Diff(map[string]Result{"stays": {Outcome: Delivered, Attempts: 1, Message: "answered 200 OK"}}, s.Results(website)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsKeptOfARolloutThatIsGone(t *testing.T) {
	b := block(t)
	other := types.NamespacedName{Namespace: "shop", Name: "other"}
	s := play(t, cluster(), loopback, Options{Timeout: time.Minute})
	s.Send(website, question("a", b.URL))
	s.Send(website, question("b", "http://127.0.0.1:1"))
	s.Send(other, question("a", b.URL))
	receive(t, "one", b.arrived)
	receive(t, "the other", b.arrived)
	s.outcome("b", Failed)
	s.Keep(website, nil)
	receive(t, "the end of it", b.cancelledByPeer)
	if got := s.Results(website); len(got) != 0 {
		t.Errorf("still known: %v", got)
	}
	if got := s.Results(other); len(got) != 1 {
		t.Errorf("the other Rollout has %v", got)
	}
	if _, found := s.deliveries[website]; found {
		t.Error("the Rollout is remembered")
	}
	close(b.release)
}

func TestACorrectedEndpointIsTriedAtOnce(t *testing.T) {
	wrong, right := listen(t, status(http.StatusNotFound)), listen(t, nil)
	s := play(t, cluster(), loopback, Options{FirstRetry: time.Hour, MaxRetry: time.Hour})
	s.Send(website, question("q", wrong.URL))
	s.await("a failure", 0, func() bool { return s.Results(website)["q"].Outcome == Failed })
	s.Send(website, question("q", wrong.URL)) // changes nothing
	if got := s.Results(website)["q"]; got.Outcome != Failed {
		t.Errorf("got %+v", got)
	}
	s.Send(website, question("q", right.URL))
	s.await("delivered", 0, func() bool { return s.Results(website)["q"].Outcome == Delivered })
}

func TestTheEndCancelsWhatIsBeingSent(t *testing.T) {
	b := block(t)
	s := play(t, cluster(), loopback, Options{Timeout: time.Minute})
	s.Send(website, question("q", b.URL))
	receive(t, "it", b.arrived)
	s.stop()
	if id := receive(t, "its end", b.cancelledByPeer); id != "q" {
		t.Error(id)
	}
	if got := s.Results(website)["q"]; got.Outcome != Pending || got.Attempts != 0 {
		t.Errorf("the end of the operator counts against the endpoint: %+v", got)
	}
	if !s.NeedLeaderElection() {
		t.Error("a standby sends too")
	}
}

func TestDelays(t *testing.T) {
	s := New(cluster(), egress.Policy{}, play(t, cluster(), egress.Policy{}, Options{}).clock, Options{
		FirstRetry: time.Second, MaxRetry: 10 * time.Second, CallAgain: 3 * time.Second,
	})
	d := &delivery{}
	for i, step := range []struct {
		answer answer
		want   time.Duration
	}{
		{answer{outcome: Failed}, time.Second},
		{answer{outcome: Failed}, 2 * time.Second},
		{answer{outcome: Failed}, 4 * time.Second},
		{answer{outcome: Failed}, 8 * time.Second},
		{answer{outcome: Failed}, 10 * time.Second},
		{answer{outcome: NotYet}, 3 * time.Second},
		{answer{outcome: Failed}, time.Second}, // it had answered
		{answer{outcome: NotYet, retryAfter: 7 * time.Second}, 7 * time.Second},
		{answer{outcome: NotYet, retryAfter: time.Second}, 3 * time.Second},
		{answer{outcome: Failed, retryAfter: time.Hour}, 10 * time.Second},
	} {
		got, again := s.delay(d, step.answer)
		if most := step.want + step.want/4; !again || got < step.want || got > most {
			t.Errorf("step %d: %s, want %s to %s", i, got, step.want, most)
		}
	}
	for _, o := range []Outcome{Delivered, Refused} {
		if _, again := s.delay(d, answer{outcome: o}); again {
			t.Errorf("%s is sent again", o)
		}
	}
}
