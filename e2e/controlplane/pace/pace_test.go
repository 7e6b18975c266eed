// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// server answers each request after a time.
type server struct{ takes time.Duration }

func (s server) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(s.takes)
	return nil, errors.New("no answer") // how it is answered does not matter
}

// ask makes requests one after another.
func ask(g *Gauge, count int, takes time.Duration, url string) {
	for range count {
		_, _ = g.Transport(server{takes}).RoundTrip(httptest.NewRequest(http.MethodGet, url, http.NoBody))
	}
}

const (
	list  = "https://127.0.0.1/api/v1/pods"
	watch = list + "?watch=true"
)

func TestATestBeginsAtOnceWhereTheControlPlaneKeepsUp(t *testing.T) {
	for name, requests := range map[string]func(*Gauge){
		"no request":               func(*Gauge) {},
		"quick ones":               func(g *Gauge) { ask(g, 100, slow, list) },
		"one slow one in ten":      func(g *Gauge) { ask(g, 9, 0, list); ask(g, 1, 2*slow, list) },
		"slow ones, some time ago": func(g *Gauge) { ask(g, 5, 2*slow, list); time.Sleep(window + time.Second) },
		"a watch that ended":       func(g *Gauge) { ask(g, 1, time.Minute, watch) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New(clock.RealClock{})
				requests(g)
				if waited := g.Begin(); waited != 0 {
					t.Errorf("waited %s", waited)
				}
			})
		})
	}
}

func TestATestWaitsWhileRequestsAreSlow(t *testing.T) {
	for name, test := range map[string]struct {
		requests func(*Gauge)
		want     time.Duration
	}{
		"two slow ones in ten": {func(g *Gauge) { ask(g, 8, 0, list); ask(g, 2, 2*slow, list) }, window + pause},
		"one that is open": {func(g *Gauge) {
			ask(g, 5, 0, list)
			go ask(g, 1, 3*time.Second, list)
			time.Sleep(2 * time.Second)
		}, window + 2*pause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New(clock.RealClock{})
				test.requests(g)
				if waited := g.Begin(); waited != test.want {
					t.Errorf("waited %s, want %s", waited, test.want)
				}
			})
		})
	}
}

func TestThoseThatWaitedBeginOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(clock.RealClock{})
		ask(g, 1, 2*slow, list)
		var tests sync.WaitGroup
		waited := make(chan time.Duration, 3)
		for range cap(waited) {
			tests.Go(func() { waited <- g.Begin() })
		}
		tests.Wait()
		for n := range cap(waited) {
			if got, want := <-waited, window+time.Duration(n+1)*pause; got != want {
				t.Errorf("number %d waited %s, want %s", n, got, want)
			}
		}
		time.Sleep(pause)
		if got := g.Begin(); got != 0 {
			t.Errorf("a later one waited %s", got)
		}
	})
}
