// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/release/state"
)

// memory is what the shell remembers between its looks at the Rollouts. A restart may
// forget it: that costs one write of figures, and a new process has read everything anew.
type memory struct {
	mu sync.Mutex
	of map[types.NamespacedName]remembered
}

type remembered struct {
	// lookout knows when the operator could not look.
	lookout state.Lookout
	// reportedAt is when the status was written last, so that figures are written less often.
	reportedAt time.Time
	// stored is a status, and record what it has become since, whose write was put off; nil
	// for none. A restart goes on with what is stored. No code changes a status in place.
	stored, record *v1alpha1.RolloutStatus
	// splitGone is since when no TrafficSplit of the Rollout was seen; zero while there is one.
	splitGone time.Time
	// outage is when no version that gets traffic had an available pod, for the last time.
	outage time.Time
	// orphaned is since when the Rollout is gone and its objects are not; zero when that was
	// never seen.
	orphaned time.Time
}

// look notes a look, and returns what is remembered.
func (m *memory) look(rollout types.NamespacedName, now time.Time) remembered {
	return m.change(rollout, func(r *remembered) { r.lookout = r.lookout.Look(now) })
}

// decided notes how long after its last look a Rollout is to be looked at again, and whether
// that look saw an outage.
func (m *memory) decided(rollout types.NamespacedName, after time.Duration, outage bool) {
	m.change(rollout, func(r *remembered) {
		if outage {
			r.outage = r.lookout.At
		}
		r.lookout = r.lookout.LookAgain(after)
	})
}

// recall puts what a status has become since it was written into its place, and returns the
// stored one. Another status than the one that was read then begins anew.
func (m *memory) recall(ro *v1alpha1.Rollout) (stored *v1alpha1.RolloutStatus) {
	stored = &ro.Status
	m.mu.Lock()
	defer m.mu.Unlock()
	r, found := m.of[client.ObjectKeyFromObject(ro)]
	if !found || r.record == nil || !apiequality.Semantic.DeepEqual(stored, r.stored) {
		return stored
	}
	before := ro.Status
	ro.Status = *r.record
	return &before
}

// putOff remembers what became of a status, instead of a write; nil for nothing.
func (m *memory) putOff(rollout types.NamespacedName, stored, record *v1alpha1.RolloutStatus) {
	m.change(rollout, func(r *remembered) { r.stored, r.record = stored, record })
}

// reported notes that a status was written.
func (m *memory) reported(rollout types.NamespacedName, now time.Time) {
	m.change(rollout, func(r *remembered) { r.reportedAt = now })
}

// splitGone notes whether there is a TrafficSplit, and returns since when there is none.
func (m *memory) splitGone(rollout types.NamespacedName, gone bool, now time.Time) time.Time {
	return m.change(rollout, func(r *remembered) {
		switch {
		case !gone:
			r.splitGone = time.Time{}
		case r.splitGone.IsZero():
			r.splitGone = now
		}
	}).splitGone
}

// orphaned notes whether a Rollout is gone and its objects are not, and returns since when.
func (m *memory) orphaned(rollout types.NamespacedName, left bool, now time.Time) time.Time {
	return m.change(rollout, func(r *remembered) {
		switch {
		case !left:
			r.orphaned = time.Time{}
		case r.orphaned.IsZero():
			r.orphaned = now
		}
	}).orphaned
}

// known is what is remembered of a Rollout.
func (m *memory) known(rollout types.NamespacedName) remembered {
	return m.change(rollout, func(*remembered) {})
}

func (m *memory) change(rollout types.NamespacedName, change func(*remembered)) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]remembered{}
	}
	r := m.of[rollout]
	change(&r)
	m.of[rollout] = r
	return r
}

// forget drops a Rollout that is gone.
func (m *memory) forget(rollout types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, rollout)
}
