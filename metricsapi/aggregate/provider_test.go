// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// source answers after a while and counts what it was asked.
type source struct {
	takes map[string]time.Duration
	err   error

	mu    sync.Mutex
	asked map[string]int
}

func (s *source) Observe(ctx context.Context, namespace string) (observe.Snapshot, error) {
	s.mu.Lock()
	if s.asked == nil {
		s.asked = map[string]int{}
	}
	s.asked[namespace]++
	s.mu.Unlock()
	select {
	case <-time.After(s.takes[namespace]):
	case <-ctx.Done():
		return observe.Snapshot{}, ctx.Err()
	}
	if s.err != nil {
		return observe.Snapshot{}, s.err
	}
	snapshot := usual()
	snapshot.End = time.Now().Truncate(30 * time.Second)
	snapshot.Start = snapshot.End.Add(-30 * time.Second)
	return snapshot, nil
}

func (s *source) times(t *testing.T, want map[string]int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("asked: %s", diff)
	}
}

func TestOneObservationServesAllRequestsOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: map[string]time.Duration{"shop": time.Second}}
		p := NewProvider(s, shop(), clock.RealClock{}, Options{})
		var asking sync.WaitGroup
		for i := range 50 {
			asking.Go(func() {
				kind := observe.Kinds[i%len(observe.Kinds)]
				if kind == observe.Namespaces || kind == observe.Nodes {
					kind = observe.Pods
				}
				if _, err := p.Metrics(t.Context(), request(kind, "")); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		s.times(t, map[string]int{"shop": 1})
		a, err := p.Edges(t.Context(), request(observe.Pods, "load-a"))
		if err != nil || len(a.Items) != 2 || a.Warnings != nil {
			t.Errorf("%+v, %v", a, err)
		}
		s.times(t, map[string]int{"shop": 1})
		time.Sleep(31 * time.Second) // the next window is over
		if _, err := p.Metrics(t.Context(), request(observe.Pods, "")); err != nil {
			t.Error(err)
		}
		s.times(t, map[string]int{"shop": 2})
	})
}

func TestWhatIsKnownOfAllNamespacesServesEachOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		p := NewProvider(s, shop(), clock.RealClock{}, Options{})
		for _, r := range []observe.Request{request(observe.Nodes, ""), request(observe.Pods, ""), request(observe.Namespaces, "shop")} {
			if _, err := p.Metrics(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		s.times(t, map[string]int{"": 1})
	})
}

func TestASlowNamespaceHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{takes: map[string]time.Duration{"shop": time.Hour}}
		p := NewProvider(s, shop(), clock.RealClock{}, Options{Timeout: 5 * time.Second})
		slow := make(chan error)
		go func() {
			_, err := p.Metrics(t.Context(), request(observe.Pods, ""))
			slow <- err
		}()
		synctest.Wait()
		begun := time.Now()
		if _, err := p.Metrics(t.Context(), observe.Request{Kind: observe.Pods, Namespace: "other", Name: "caller"}); err != nil || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Metrics(impatient, request(observe.Pods, "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one whose time is over: %v", err)
		}
		var unavailable *observe.UnavailableError
		if err := <-slow; !errors.As(err, &unavailable) || unavailable.Message != "the source of the metrics did not answer in time" {
			t.Errorf("the slow one: %v", err)
		}
	})
}

func TestAnErrorIsForgottenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{err: &observe.UnavailableError{Message: "down"}}
		p := NewProvider(s, shop(), clock.RealClock{}, Options{})
		ask := func() error {
			_, err := p.Metrics(t.Context(), request(observe.Pods, ""))
			return err
		}
		for range 10 {
			if err := ask(); !errors.Is(err, s.err) {
				t.Fatal(err)
			}
		}
		s.times(t, map[string]int{"shop": 1})
		s.err = nil
		time.Sleep(time.Second)
		if err := ask(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheNumberOfKeptSnapshotsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProvider(&source{}, shop(), clock.RealClock{}, Options{Scopes: 4})
		for i := range 100 {
			if _, err := p.Metrics(t.Context(), observe.Request{Kind: observe.Pods, Namespace: strconv.Itoa(i), Name: "x"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if kept := p.kept.Keys(); !slices.Equal(kept, []any{"96", "97", "98", "99"}) {
			t.Errorf("kept are %v, not the newest", kept)
		}
	})
}
