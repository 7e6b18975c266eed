// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/e2e/cluster"
)

// TestTwoClustersDoNotDisturbEachOther starts, uses and removes a second cluster
// while clients send requests to a Service of the first.
func TestTwoClustersDoNotDisturbEachOther(t *testing.T) {
	first := cluster.Options{Dir: shortDir(t), Out: testWriter{t}}
	second := cluster.Options{Dir: shortDir(t), Out: testWriter{t}}
	before := takeTrace(t, first.Dir, second.Dir)
	t.Cleanup(func() { removeQuietly(t, first); removeQuietly(t, second) })
	firstURL := startGreeting(t, first)
	state := takeState(t, first)
	finish := keepRequesting(t, firstURL)

	secondURL := startGreeting(t, second)
	if firstURL == secondURL {
		t.Errorf("both clusters have a Service at %s", firstURL)
	}
	if err := cluster.Down(t.Context(), second); err != nil {
		t.Fatal(err)
	}

	sent, failures := finish()
	if sent == 0 || len(failures) > 0 {
		t.Errorf("%d of %d requests to the first cluster failed: %v", len(failures), sent, failures)
	}
	if diff := cmp.Diff(state, takeState(t, first)); diff != "" {
		t.Errorf("the first cluster changed (-before +after):\n%s", diff)
	}
	if err := cluster.Down(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	requireTrace(t, before, first.Dir, second.Dir)
}

// startGreeting starts a cluster with a Service in it and returns the Service's URL.
func startGreeting(t *testing.T, options cluster.Options) string {
	t.Helper()
	c := requireUp(t, options)
	loadProbe(t, c)
	url := "http://" + createProbe(t, newClient(t, c))
	requireAnswer(t, url)
	return url
}

// takeState describes what another cluster could break: the rules and routes of
// the cluster's own namespace, its programs, and what it shares with the machine.
func takeState(t *testing.T, options cluster.Options) trace {
	t.Helper()
	state := trace{}
	for kind, command := range map[string][]string{
		"nftables": {"nft", "--stateless", "list", "ruleset"},
		"routes":   {"ip", "-4", "route", "show", "table", "all"},
		"links":    {"ip", "-4", "-oneline", "address"},
	} {
		enter := append([]string{"--net=" + filepath.Join(options.Dir, "netns"), "--"}, command...)
		output, err := exec.CommandContext(t.Context(), "nsenter", enter...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", command, err, output)
		}
		state[kind] = strings.Split(string(output), "\n")
	}
	for name, pid := range processes(t, options) {
		state["process "+name] = []string{strconv.Itoa(pid)}
	}
	takeSharedTrace(state)
	return state
}

// keepRequesting sends requests, each on a connection of its own, until finish is
// called, which returns how many were sent and the failures.
func keepRequesting(t *testing.T, url string) (finish func() (sent int, failures []error)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}
	var sent int
	var failures []error
	done := make(chan struct{})
	go func() {
		defer close(done)
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for ; ; sent++ {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
			if err := requestOnce(client, url); err != nil {
				failures = append(failures, err)
			}
		}
	}()
	return func() (int, []error) {
		stop()
		<-done
		t.Logf("%d requests", sent)
		return sent, failures
	}
}

func requestOnce(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && strings.TrimSpace(string(content)) != "hello" {
		err = errors.New(response.Status + ": " + string(content))
	}
	return err
}
