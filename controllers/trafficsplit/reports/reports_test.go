// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/traffic"
)

var website = types.NamespacedName{Namespace: "shop", Name: "website"}

// fleet is a number of proxies that each take some time to follow and to answer. It says
// what they serve by the address that they have.
type fleet struct {
	mu      sync.Mutex
	serves  traffic.Want
	pods    map[string]types.UID // by address
	answer  time.Duration
	deaf    map[string]bool
	reads   int
	message string
	version string
}

func newFleet(n int) *fleet {
	f := &fleet{pods: map[string]types.UID{}, deaf: map[string]bool{}, answer: 5 * time.Millisecond}
	for i := range n {
		f.pods[fmt.Sprintf("10.0.%d.%d:15020", i/250, i%250)] = types.UID(fmt.Sprintf("uid-%d", i))
	}
	return f
}

func (f *fleet) Read(ctx context.Context, address string, pod types.UID) (confirmation.Served, error) {
	f.mu.Lock()
	deaf := f.deaf[address]
	f.reads++
	f.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return confirmation.Served{}, ctx.Err()
	}
	time.Sleep(f.answer)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods[address] != pod {
		return confirmation.Served{}, errors.New("another pod answers")
	}
	return confirmation.Served{Pod: pod, Generation: f.serves.Generation, Configuration: f.serves.Configuration, Message: f.message, Version: f.version}, nil
}

func (f *fleet) follow(w traffic.Want) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serves = w
}

func (f *fleet) addresses() map[types.UID]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[types.UID]string{}
	for address, uid := range f.pods {
		out[uid] = address
	}
	return out
}

// in runs a test in a bubble of fake time.
func in(t *testing.T, f *fleet, test func(t *testing.T, r *Reports, changed chan types.NamespacedName)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Source: f, Clock: clock.RealClock{}, Version: "0.3.0"})
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan types.NamespacedName, 10000)
		go func() {
			for {
				select {
				case e := <-r.Changed():
					changed <- e.Object
				case <-ctx.Done():
					return
				}
			}
		}()
		done := make(chan error, 1)
		go func() { done <- r.Start(ctx) }()
		test(t, r, changed)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func confirmed(readings map[types.UID]traffic.Reading, want traffic.Want) int {
	n := 0
	for _, r := range readings {
		if r.Done && r.Serves == want {
			n++
		}
	}
	return n
}

func TestTwoHundredProxiesConfirmEachWantWithinThreeSeconds(t *testing.T) {
	f := newFleet(200)
	in(t, f, func(t *testing.T, r *Reports, changed chan types.NamespacedName) {
		for generation := range int64(5) {
			want := traffic.Want{Generation: generation, Configuration: fmt.Sprint("digest-", generation)}
			if n := confirmed(r.Read(website, want, f.addresses()), want); n != 0 {
				t.Errorf("%d proxies are confirmed before they were read", n)
			}
			time.Sleep(1100 * time.Millisecond) // proxies take about a second to follow
			f.follow(want)
			time.Sleep(1900 * time.Millisecond)
			synctest.Wait()
			if n := confirmed(r.Read(website, want, f.addresses()), want); n != 200 {
				t.Errorf("%d of 200 proxies are confirmed after three seconds", n)
			}
			if len(changed) == 0 {
				t.Error("the controller was not notified")
			}
			for len(changed) > 0 {
				<-changed
			}
		}
	})
}

func TestProxiesThatDoNotAnswerHoldUpNoOther(t *testing.T) {
	f := newFleet(200)
	want := traffic.Want{Generation: 1, Configuration: "x"}
	f.follow(want)
	for address := range f.pods {
		if len(f.deaf) < 50 {
			f.deaf[address] = true
		}
	}
	in(t, f, func(t *testing.T, r *Reports, _ chan types.NamespacedName) {
		r.Read(website, want, f.addresses())
		time.Sleep(3 * time.Second)
		synctest.Wait()
		readings := r.Read(website, want, f.addresses())
		if n := confirmed(readings, want); n != 150 {
			t.Errorf("%d of the 150 that answer are confirmed", n)
		}
		for address := range f.deaf {
			if got := readings[f.pods[address]]; !got.Done || !got.Failed || !strings.Contains(got.Message, address) {
				t.Errorf("of one that does not answer: %+v", got)
			}
		}
	})
}

func TestAnotherPodAtTheSameAddressConfirmsNothing(t *testing.T) {
	f := newFleet(1)
	want := traffic.Want{Generation: 1, Configuration: "x"}
	f.follow(want)
	in(t, f, func(t *testing.T, r *Reports, _ chan types.NamespacedName) {
		const address = "10.0.0.0:15020"
		read := func(uid types.UID) traffic.Reading {
			r.Read(website, want, map[types.UID]string{uid: address})
			time.Sleep(time.Second)
			synctest.Wait()
			return r.Read(website, want, map[types.UID]string{uid: address})[uid]
		}
		if got := read("uid-0"); got.Serves != want {
			t.Errorf("the pod itself: %+v", got)
		}
		if got := read("replaced"); got.Serves == want || !got.Failed { // the stale pod still answers
			t.Errorf("its replacement: %+v", got)
		}
		f.mu.Lock()
		f.pods[address] = "replaced"
		f.mu.Unlock()
		time.Sleep(time.Second)
		if got := read("replaced"); got.Serves != want {
			t.Errorf("its replacement answers: %+v", got)
		}
	})
}

func TestAProxyOfAnUnsupportedVersionConfirmsNothing(t *testing.T) {
	want := traffic.Want{Generation: 1, Configuration: "x"}
	for version, supported := range map[string]bool{"": true, "(devel)": true, "0.2.4": true, "0.3.0": true, "0.4.0": true, "0.1.0": false, "0.5.0": false} {
		t.Run(version, func(t *testing.T) {
			f := newFleet(1)
			f.version = version
			f.follow(want)
			in(t, f, func(t *testing.T, r *Reports, _ chan types.NamespacedName) {
				r.Read(website, want, f.addresses())
				time.Sleep(time.Second)
				synctest.Wait()
				got := r.Read(website, want, f.addresses())["uid-0"]
				if supported != (got.Serves == want) || supported == strings.Contains(got.Message, "give proxy.image of the chart the version of image") {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestAReadingThatBeganBeforeTheWantChangedDoesNotCount(t *testing.T) {
	f := newFleet(1)
	first, second := traffic.Want{Generation: 1, Configuration: "x"}, traffic.Want{Generation: 1, Configuration: "y"}
	f.follow(first)
	f.answer = 500 * time.Millisecond
	in(t, f, func(t *testing.T, r *Reports, _ chan types.NamespacedName) {
		r.Read(website, first, f.addresses())
		time.Sleep(100 * time.Millisecond)
		r.Read(website, second, f.addresses())
		r.Read(website, first, f.addresses())
		f.follow(second)
		time.Sleep(450 * time.Millisecond) // the first reading would end now
		synctest.Wait()
		if got := r.Read(website, first, f.addresses())["uid-0"]; got.Done {
			t.Errorf("%+v", got)
		}
	})
}

func TestWhatWasConfirmedStaysWhileAProxyCanNotBeRead(t *testing.T) {
	f := newFleet(1)
	want := traffic.Want{Generation: 1, Configuration: "x"}
	f.follow(want)
	in(t, f, func(t *testing.T, r *Reports, _ chan types.NamespacedName) {
		r.Read(website, want, f.addresses())
		time.Sleep(time.Second)
		f.mu.Lock()
		f.deaf["10.0.0.0:15020"] = true
		f.mu.Unlock()
		time.Sleep(time.Minute)
		if got := r.Read(website, want, f.addresses())["uid-0"]; got.Serves != want {
			t.Errorf("the same want: %+v", got)
		}
		next := traffic.Want{Generation: 2, Configuration: "y"}
		r.Read(website, next, f.addresses())
		time.Sleep(time.Minute)
		if got := r.Read(website, next, f.addresses())["uid-0"]; !got.Failed || got.Serves != (traffic.Want{}) {
			t.Errorf("a new want: %+v", got)
		}
	})
}

func TestQuietProxiesAreReadSeldomAndGoneOnesNever(t *testing.T) {
	f := newFleet(10)
	want := traffic.Want{Generation: 1, Configuration: "x"}
	f.follow(want)
	in(t, f, func(t *testing.T, r *Reports, changed chan types.NamespacedName) {
		reads := func(d time.Duration) int {
			f.mu.Lock()
			before := f.reads
			f.mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.reads - before
		}
		r.Read(website, want, f.addresses())
		reads(time.Second)
		for len(changed) > 0 {
			<-changed
		}
		if n := reads(100 * time.Second); n != 100 {
			t.Errorf("%d readings of 10 proxies in 100 s", n)
		}
		if len(changed) != 0 {
			t.Errorf("%d notifications of nothing new", len(changed))
		}
		r.Read(website, want, nil)
		if n := reads(time.Minute); n != 0 {
			t.Errorf("%d readings of proxies that are gone", n)
		}
	})
}

func TestAProxyIsAskedByHTTP(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an agent": {func(w http.ResponseWriter, _ *http.Request) {
			confirmation.Write(w, confirmation.Served{Pod: "uid-1", Generation: 7})
		}, ""},
		"another pod":                    {func(w http.ResponseWriter, _ *http.Request) { confirmation.Write(w, confirmation.Served{Pod: "uid-2"}) }, "another pod answers"},
		"an agent of an earlier version": {http.NotFound, "status 404"},
		"a redirect":                     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "status 302"},
		"an answer that does not end":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) }, "too long"},
		"something else":                 {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "does not report what it serves"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			got, err := NewHTTP().Read(t.Context(), server.Listener.Addr().String(), "uid-1")
			switch {
			case test.want == "" && (err != nil || got.Generation != 7):
				t.Errorf("got %+v and %v", got, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || got != confirmation.Served{}):
				t.Errorf("got %+v and %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestAProxyThatDoesNotAnswerIsNamedWithWhatToDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it accepts nothing
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := NewHTTP().Read(ctx, listener.Addr().String(), "uid-1"); err == nil || !strings.Contains(err.Error(), "docs/proxy.md") {
		t.Errorf("%v", err)
	}
}
