// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// sequence is the order in which the scenarios of the stage e2e begin. First come the two that have
// the metrics of the chart taken from a Prometheus for a while, one after the other, and last those
// that need these metrics as installed.
var sequence = []string{
	"TestTrafficMetrics", "TestGatewayMetrics", "TestCanaryRelease", "TestTrafficSplit", "TestGateway", "TestDelegatedCanaryRelease", "TestDemo",
}

// turns are those of tests that run in parallel: the package testing would begin them in any order.
type turns struct {
	order []string

	mu      sync.Mutex
	free    int
	waiting []string
	changed *sync.Cond
}

func newTurns(atOnce int, order []string) *turns {
	q := &turns{order: order, free: atOnce}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// await runs the test in parallel with others, when it is its turn.
func (q *turns) await(t *testing.T) {
	t.Helper()
	q.join(t.Name())
	t.Parallel() // returns when all that run in parallel have joined
	q.begin(t.Name())
	t.Cleanup(q.end)
}

func (q *turns) join(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, name)
	slices.SortStableFunc(q.waiting, func(a, b string) int { return q.rank(a) - q.rank(b) })
}

// rank is the place of a test in the order; those that it does not have are last.
func (q *turns) rank(name string) int {
	if at := slices.Index(q.order, name); at >= 0 {
		return at
	}
	return len(q.order)
}

func (q *turns) begin(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.free == 0 || q.waiting[0] != name {
		q.changed.Wait()
	}
	q.free--
	q.waiting = q.waiting[1:]
	q.changed.Broadcast()
}

func (q *turns) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.changed.Broadcast()
}

func TestScenariosBeginInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(2, []string{"first", "second"})
		names := []string{"unknown", "another", "second", "first"}
		for _, name := range names {
			q.join(name)
		}
		began := make(chan string, len(names))
		for _, name := range names {
			go func() {
				q.begin(name)
				began <- name
			}()
		}
		for _, want := range [][]string{{"first", "second"}, {"unknown"}, {"another"}} {
			synctest.Wait()
			var got []string
			for len(began) > 0 {
				got = append(got, <-began)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("begun: %v, want %v", got, want)
			}
			q.end()
		}
	})
}
