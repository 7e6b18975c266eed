// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/collect"
)

const (
	// shortest and longest are the limits of the time between two lists.
	shortest, longest = 5 * time.Second, time.Minute
	// settle is how long after a window ends its metrics are asked for.
	settle = time.Second
	// listTimeout is how long a list may take.
	listTimeout = 10 * time.Second
)

// TrafficMetrics measures TrafficSplits by the API of the same name, of any server.
// Once in each of its windows it lists the metrics of all splits at once.
type TrafficMetrics struct {
	lister  Lister
	clock   collect.Clock
	changed chan event.TypedGenericEvent[types.NamespacedName]
	// apart is set once the splits of all namespaces may not be listed together. Only
	// Start reads and writes it.
	apart bool

	mu sync.Mutex
	// splits by the Rollout that each is measured for.
	splits map[types.NamespacedName]*split
	// due is when to ask again.
	due time.Time
}

// split is what is known of one TrafficSplit.
type split struct {
	analysis.Subject
	weight  analysis.Weight
	windows []analysis.Window // oldest first
	health  analysis.Health
	// ended is the end of the newest window that was looked at.
	ended time.Time
}

// NewTrafficMetrics makes it. Nothing is asked before the first split is measured.
func NewTrafficMetrics(lister Lister, clock collect.Clock) *TrafficMetrics {
	return &TrafficMetrics{
		lister: lister, clock: clock, splits: map[types.NamespacedName]*split{},
		changed: make(chan event.TypedGenericEvent[types.NamespacedName], backlog),
	}
}

// Measure begins to measure a split for a Rollout, or updates its weight.
func (m *TrafficMetrics) Measure(_ context.Context, key types.NamespacedName, of analysis.Subject, w analysis.Weight) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.splits[key]
	if known == nil || known.Subject != of {
		m.splits[key] = &split{Subject: of, weight: w}
		m.due = time.Time{}
		return nil
	}
	known.weight = w
	return nil
}

// Forget ends the measurement for a Rollout.
func (m *TrafficMetrics) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.splits, key)
}

// Windows returns the windows that ended after a time, oldest first, and how well the
// split is measured. They have no latencies: the API tells quantiles, which can't be
// compared or added.
func (m *TrafficMetrics) Windows(key types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.splits[key]
	if s == nil {
		return nil, analysis.Health{}
	}
	first, _ := slices.BinarySearchFunc(s.windows, after, func(w analysis.Window, t time.Time) int {
		if w.End.After(t) {
			return 1
		}
		return -1
	})
	return slices.Clone(s.windows[first:]), s.health
}

// Changed carries the Rollouts with a new window or a change of health.
func (m *TrafficMetrics) Changed() <-chan event.TypedGenericEvent[types.NamespacedName] {
	return m.changed
}

// NeedLeaderElection is true: only the leader judges.
func (m *TrafficMetrics) NeedLeaderElection() bool { return true }

// Start asks once in each window until ctx ends, while any split is measured.
func (m *TrafficMetrics) Start(ctx context.Context) error {
	for {
		if namespaces := m.wanted(); len(namespaces) > 0 {
			m.poll(ctx, namespaces)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.clock.After(shortest):
		}
	}
}

// wanted are the namespaces of the splits to ask for now; none when it is too early.
func (m *TrafficMetrics) wanted() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Now().Before(m.due) {
		return nil
	}
	var namespaces []string
	for key := range m.splits {
		if !slices.Contains(namespaces, key.Namespace) {
			namespaces = append(namespaces, key.Namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces
}

// poll lists the metrics and sorts them to their splits.
func (m *TrafficMetrics) poll(ctx context.Context, namespaces []string) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	answers := m.list(ctx, namespaces)
	if ctx.Err() != nil && len(answers) == 0 {
		return // stopping is no fault of the API's
	}
	now := m.clock.Now().Truncate(time.Microsecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	next := now.Add(longest)
	for key, s := range m.splits {
		a, asked := answers[key.Namespace]
		if !asked {
			a, asked = answers[""]
		}
		if !asked {
			next = now // it was added meanwhile
			continue
		}
		r, found := a.readings[types.NamespacedName{Namespace: key.Namespace, Name: s.Split}]
		if s.take(r, found, a.problem, now) {
			m.notify(key)
		}
		if found && a.problem == "" {
			next = earlier(next, r.end.Add(r.end.Sub(r.start)+settle))
		} else {
			next = earlier(next, now.Add(3*shortest))
		}
	}
	m.due = next
	if soonest := now.Add(shortest); m.due.Before(soonest) {
		m.due = soonest
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// take adds what was read, and reports whether there is something new.
func (t *split) take(r reading, found bool, problem string, now time.Time) bool {
	before := t.health
	if problem != "" {
		t.health.Reason, t.health.Message = analysis.ReasonNoData, problem
		return before != t.health
	}
	fresh := found && r.end.After(t.ended)
	w, reason, message := t.window(r, found, now)
	t.health.Reason, t.health.Message = reason, message
	if found && message == "" {
		t.health.LastScrape = now
	}
	if !fresh || reason != "" {
		return before.Reason != reason || before.Message != message
	}
	t.ended, t.health.LastWindow = r.end, r.end
	// A fresh slice: readers hold the old one.
	first := max(0, len(t.windows)+1-collect.DefaultKeep)
	t.windows = append(slices.Clone(t.windows[first:]), w)
	return true
}

func (m *TrafficMetrics) notify(key types.NamespacedName) {
	select {
	case m.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
	default:
	}
}
