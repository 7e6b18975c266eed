// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

func TestAnswer(t *testing.T) {
	tests := []struct {
		name        string
		failShare   float64
		drawn       float64
		path        string
		draining    bool
		wantStatus  int
		wantVersion string
		wantClose   bool
	}{
		{name: "a good version answers with its name", path: "/", wantStatus: 200, wantVersion: "v2"},
		{name: "every path is answered", path: "/a/b?c=d", wantStatus: 200, wantVersion: "v2"},
		{name: "a draw below the share fails and still says which version it was", failShare: 0.05, drawn: 0.049, path: "/", wantStatus: 500, wantVersion: "v2"},
		{name: "a draw at the share succeeds", failShare: 0.05, drawn: 0.05, path: "/", wantStatus: 200, wantVersion: "v2"},
		{name: "a version that never fails succeeds at the lowest draw", drawn: 0, path: "/", wantStatus: 200, wantVersion: "v2"},
		{name: "while draining, answers go on and the connection closes", path: "/", draining: true, wantStatus: 200, wantVersion: "v2", wantClose: true},
		{name: "readiness is true while serving", path: "/healthz", wantStatus: 200},
		{name: "readiness is false while draining", path: "/healthz", draining: true, wantStatus: 503},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := &app{config: config{version: "v2", pod: "p", failShare: test.failShare}, clock: clock.RealClock{}, draw: func() float64 { return test.drawn }}
			a.draining.Store(test.draining)
			server := httptest.NewServer(a.handler())
			defer server.Close()
			response := get(t, server.URL+test.path)
			defer response.Body.Close()
			if response.StatusCode != test.wantStatus {
				t.Errorf("got status %d, want %d", response.StatusCode, test.wantStatus)
			}
			if got := response.Header.Get("X-Version"); got != test.wantVersion {
				t.Errorf("got version %q, want %q", got, test.wantVersion)
			}
			if response.Close != test.wantClose {
				t.Errorf("the connection closes: %v, want %v", response.Close, test.wantClose)
			}
		})
	}
}

func TestAnswerCarriesVersionAndPod(t *testing.T) {
	a := &app{config: config{version: "v1", pod: "website-abc"}, clock: clock.RealClock{}, draw: func() float64 { return 0 }}
	recorder := httptest.NewRecorder()
	a.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	var got answer
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer{Version: "v1", Pod: "website-abc", Message: "Hello!", Count: 1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnswerSaysForWhomAProxyAsked(t *testing.T) {
	a := &app{config: config{version: "v1"}, clock: clock.RealClock{}, draw: func() float64 { return 0 }}
	for _, clients := range []string{"", "10.0.0.7, 10.0.0.8"} {
		request, recorder := httptest.NewRequest(http.MethodGet, "/", http.NoBody), httptest.NewRecorder()
		if clients != "" {
			request.Header.Set("X-Forwarded-For", clients)
		}
		a.handler().ServeHTTP(recorder, request)
		if got := recorder.Header().Get("X-Forwarded-For"); got != clients {
			t.Errorf("got %q, want %q", got, clients)
		}
	}
}

func TestLatencyIsTakenFromTheClock(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	a := &app{config: config{version: "v1", latency: time.Second}, clock: fake, draw: func() float64 { return 0 }}
	recorder, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		a.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	}()
	waitForWaiters(t, fake)
	fake.Step(time.Second)
	<-done
	if recorder.Code != http.StatusOK {
		t.Errorf("got status %d", recorder.Code)
	}
}

func TestAStreamTakesTheTimeThatItIsAskedFor(t *testing.T) {
	start := time.Unix(0, 0)
	fake := testingclock.NewFakeClock(start)
	a := &app{config: config{version: "v1"}, clock: fake}
	recorder, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		a.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/stream?for=1s", http.NoBody))
	}()
	for range 10 {
		waitForWaiters(t, fake)
		fake.Step(streamPause)
	}
	<-done
	if got := recorder.Body.String(); got != ".........." || recorder.Header().Get("X-Version") != "v1" {
		t.Errorf("got %q by %q", got, recorder.Header().Get("X-Version"))
	}
}

func TestAStreamOfNoTimeIsRefused(t *testing.T) {
	a := &app{config: config{version: "v1"}, clock: clock.RealClock{}}
	for _, query := range []string{"", "?for=long", "?for=-1s", "?for=1h"} {
		recorder := httptest.NewRecorder()
		a.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/stream"+query, http.NoBody))
		if recorder.Code != http.StatusBadRequest {
			t.Errorf("%q: got status %d", query, recorder.Code)
		}
	}
}

func TestStopDrainsBeforeItCloses(t *testing.T) {
	fake := testingclock.NewFakeClock(time.Unix(0, 0))
	a := &app{config: config{version: "v1", drain: 5 * time.Second}, clock: fake, draw: func() float64 { return 0 }}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- a.serve(ctx, listener) }()
	drainAnswer := func() (status, ready int) {
		answer, health := get(t, url), get(t, url+"/healthz")
		defer answer.Body.Close()
		defer health.Body.Close()
		return answer.StatusCode, health.StatusCode
	}
	if status, ready := drainAnswer(); status != 200 || ready != 200 {
		t.Fatalf("before the stop: answer %d, readiness %d", status, ready)
	}
	stop()
	waitForWaiters(t, fake)
	if status, ready := drainAnswer(); status != 200 || ready != 503 {
		t.Fatalf("while draining: answer %d, readiness %d, want 200 and 503", status, ready)
	}
	fake.Step(5 * time.Second)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response
}

// waitForWaiters returns once something waits for the fake clock.
func waitForWaiters(t *testing.T, fake *testingclock.FakeClock) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !fake.HasWaiters() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("nothing ever waited for the clock")
		}
	}
}
