// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/controllers/kit/changes"
	"github.com/serin-dev/serin/poll"
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
	clock   poll.Clock
	changes changes.Channel
	// apart is set once the splits of all namespaces may not be listed together. After the
	// start, only Start reads and writes it.
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
	record
	weight analysis.Weight
	// ended is the end of the newest window that was looked at.
	ended time.Time
}

// NewTrafficMetrics makes it. Nothing is asked before the first split is measured. The
// channel learns of each new window and each change of health.
func NewTrafficMetrics(lister Lister, clock poll.Clock, c changes.Channel) *TrafficMetrics {
	return &TrafficMetrics{lister: lister, clock: clock, changes: c, splits: map[types.NamespacedName]*split{}}
}

// Apart has each namespace listed by itself, for an operator that may not list all.
func (m *TrafficMetrics) Apart() { m.apart = true }

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
// split is measured. They have no latencies: the API has quantiles, which can't be
// compared or added.
func (m *TrafficMetrics) Windows(key types.NamespacedName, after time.Time) ([]analysis.Window, analysis.Health) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.splits[key]; s != nil {
		return s.after(after)
	}
	return nil, analysis.Health{}
}

// NeedLeaderElection is true: only the leader judges.
func (m *TrafficMetrics) NeedLeaderElection() bool { return true }

// Start asks once in each window until ctx ends, while any split is measured.
func (m *TrafficMetrics) Start(ctx context.Context) error {
	poll.Every(ctx, m.clock, shortest, func(ctx context.Context) {
		if splits, sets := m.wanted(); len(splits)+len(sets) > 0 {
			m.ask(ctx, splits, sets)
		}
	})
	return nil
}

// wanted are the namespaces of the splits and of the ReplicaSets to ask for now; none when
// it is too early.
func (m *TrafficMetrics) wanted() (splits, sets []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Now().Before(m.due) {
		return nil, nil
	}
	for key, s := range m.splits {
		namespaces := &splits
		if s.Split == "" {
			namespaces = &sets
		}
		if !slices.Contains(*namespaces, key.Namespace) {
			*namespaces = append(*namespaces, key.Namespace)
		}
	}
	slices.Sort(splits)
	slices.Sort(sets)
	return splits, sets
}

// ask lists the metrics and sorts them to their splits, or pairs of ReplicaSets. All
// ReplicaSets of the cluster are too many to list.
func (m *TrafficMetrics) ask(ctx context.Context, splits, sets []string) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	answers, ofSets := m.list(ctx, splits), m.each(ctx, replicaSets, sets)
	if ctx.Err() != nil && len(answers)+len(ofSets) == 0 {
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
		if s.Split == "" {
			a, asked = ofSets[key.Namespace]
		}
		if !asked {
			next = now // it was added meanwhile
			continue
		}
		r, found := a.readings[types.NamespacedName{Namespace: key.Namespace, Name: s.Split}]
		if s.take(r, found, a.problem, now) {
			m.changes.Notify(key)
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
	t.ended = r.end
	t.close(w)
	return true
}
