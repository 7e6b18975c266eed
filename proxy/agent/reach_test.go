// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/traffic"
)

func splitWith(weights map[string]int32) traffic.Split {
	port := traffic.Port{Number: 80}
	for _, address := range []string{"10.96.0.1", "10.96.0.2"} {
		port.Destinations = append(port.Destinations, traffic.Destination{Address: address, Port: 80, Weight: weights[address]})
	}
	return traffic.Split{Ports: []traffic.Port{port}}
}

func TestOnlyBackendsThatGotNoTrafficBeforeAreTried(t *testing.T) {
	t.Parallel()
	stableOnly := splitWith(map[string]int32{"10.96.0.1": 100})
	both := splitWith(map[string]int32{"10.96.0.1": 50, "10.96.0.2": 50})
	canaryOnly := splitWith(map[string]int32{"10.96.0.2": 100})
	for name, c := range map[string]struct {
		before, after traffic.Split
		want          []string
	}{
		"at the start, all that get traffic": {traffic.Split{}, both, []string{"10.96.0.1:80", "10.96.0.2:80"}},
		"a canary's first weight":            {stableOnly, both, []string{"10.96.0.2:80"}},
		"a change of weights":                {both, both, nil},
		"a rollback":                         {both, stableOnly, nil},
		"a rollback from all traffic":        {canaryOnly, stableOnly, []string{"10.96.0.1:80"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newlyUsed(c.before, c.after)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var errRefused = errors.New("connection refused")

// refusing refuses the first connections.
func refusing(refusals int) (dialFunc, *int) {
	tries := 0
	return func(context.Context, string, string) (net.Conn, error) {
		tries++
		if tries <= refusals {
			return nil, errRefused
		}
		client, server := net.Pipe()
		return client, server.Close()
	}, &tries
}

// stepping is a clock on which every wait is over at once.
type stepping struct{ *clocktesting.FakeClock }

func (s stepping) After(d time.Duration) <-chan time.Time {
	s.Step(d)
	c := make(chan time.Time, 1)
	c <- s.Now()
	return c
}

func TestABackendIsWaitedForUntilItAcceptsConnections(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	dial, tries := refusing(3)
	if err := reach(t.Context(), stepping{c}, dial, []string{"10.96.0.2:80"}); err != nil {
		t.Fatal(err)
	}
	if *tries != 4 {
		t.Errorf("%d tries, want 4", *tries)
	}
}

func TestABackendThatNeverAcceptsConnectionsIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	dial, _ := refusing(1 << 30)
	err := reach(t.Context(), stepping{c}, dial, []string{"10.96.0.2:80"})
	if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "10.96.0.2:80") {
		t.Errorf("error %v", err)
	}
}

func TestWaitingForABackendEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	dial, _ := refusing(1 << 30)
	if err := reach(ctx, c, dial, []string{"10.96.0.2:80"}); err == nil {
		t.Error("no error")
	}
}
