// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// besideReport runs a generator until its report says enough.
func besideReport(t *testing.T, config Config, enough func(Report) bool) Report {
	t.Helper()
	config.Rate = 1
	g, err := New(config, clock.RealClock{}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx)
	}()
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for !enough(g.Report()) {
		<-pace.C
	}
	cancel()
	<-done
	return g.Report()
}

func TestProbesOpenConnectionsToTheTargetAndToTheControl(t *testing.T) {
	control := newAppServer(t, http.StatusOK)
	config := DefaultConfig(newAppServer(t, http.StatusOK).URL)
	config.Control, config.ProbeEvery = control.URL, time.Millisecond
	report := besideReport(t, config, func(r Report) bool { return r.Probes.Requests > 5 && r.ControlProbes.Requests > 5 })
	if p := report.Probes; p.Connections != p.Requests || len(p.Kinds) != 0 {
		t.Errorf("got %+v, want as many connections as probes", p)
	}
}

func TestAProbeThatIsRefusedIsCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	o := probe(t.Context(), strings.TrimPrefix(server.URL, "http://"), time.Second)
	if o.kind != KindRefused || o.opened != 0 {
		t.Errorf("got %+v, want a refused connection", o)
	}
}

func TestAStreamThatBreaksOffIsCounted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Version", "v1")
		if r.URL.Path == "/stream" && r.FormValue("for") == "4ms" {
			_, _ = w.Write([]byte("."))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	config := DefaultConfig(server.URL)
	config.StreamFor = 4 * time.Millisecond
	report := besideReport(t, config, func(r Report) bool { return r.Streams.Requests > 0 })
	if len(report.Streams.Kinds) != 1 || report.Streams.Kinds[0].Kind != KindClosed || len(report.Streams.Failures) == 0 {
		t.Errorf("got %+v, want closed ones", report.Streams)
	}
}

// TestAHeldConnectionIsOpenedAgain tells a server that asks for another connection from one
// that breaks it.
func TestAHeldConnectionIsOpenedAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		handle http.HandlerFunc
		broken bool
	}{
		{"when the server asks for it, and no request is lost", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Version", "v1")
			w.Header().Set("Connection", "close")
		}, false},
		{"when it broke, and the request is lost", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, func(c net.Conn) {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			})
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.handle)
			t.Cleanup(server.Close)
			h := &held{address: strings.TrimPrefix(server.URL, "http://"), timeout: time.Minute}
			for range 2 {
				if o := h.call(t.Context(), server.URL); o.opened != 1 || o.kind.answered() == test.broken {
					t.Errorf("got %+v", o)
				}
			}
		})
	}
}

func TestAHeldConnectionThatIsResetWhileIdleIsALoss(t *testing.T) {
	server := newAppServer(t, http.StatusOK)
	h := &held{address: strings.TrimPrefix(server.URL, "http://"), timeout: time.Minute}
	if o := h.call(t.Context(), server.URL); o.kind != KindOK {
		t.Fatalf("got %+v", o)
	}
	server.CloseClientConnections()
	if o := h.call(t.Context(), server.URL); o.kind.answered() {
		t.Errorf("got %+v, want a loss", o)
	}
	if o := h.call(t.Context(), server.URL); o.kind != KindOK || o.opened != 1 {
		t.Errorf("got %+v, want an answer on another connection", o)
	}
}

func TestTheOldestConnectionIsTold(t *testing.T) {
	start := time.Unix(0, 0)
	config := DefaultConfig("http://website")
	config.FreshPercent, config.MinLife, config.MaxLife = 0, 2, 2
	p := newPool(config, rand.New(rand.NewPCG(1, 2)))
	if got := p.oldest(); !got.IsZero() {
		t.Errorf("got %s without a connection", got)
	}
	first, second := p.take(start), p.take(start.Add(time.Second))
	if got := p.oldest(); !got.Equal(start) {
		t.Errorf("got %s, want that of the first", got)
	}
	first.left = 0
	p.give(first)
	p.give(second)
	if got := p.oldest(); !got.Equal(start.Add(time.Second)) {
		t.Errorf("got %s, want that of the second, since the first has served its life", got)
	}
}
