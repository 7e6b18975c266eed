// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// histories is how many random lives are lived; -short lives fewer.
const histories = 600

// TestRandomHistoriesEndWellAndStaySo lets users, pods, the router and the
// operator's process do what they like, in seeded order, checks the invariants at
// every tick, and then wants everything to come to rest (L1, L4).
func TestRandomHistoriesEndWellAndStaySo(t *testing.T) {
	n := histories
	if testing.Short() {
		n /= 10
	}
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			live(t, uint64(seed))
		})
	}
}

func live(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	w.guard = r.IntN(2) == 0
	w.podDelay, w.routerLag = r.IntN(5), r.IntN(4)
	w.ro.Spec.ProgressDeadline = "90s"
	w.dep.replicas = int32(1 + r.IntN(9))
	if bad := r.IntN(6); bad > 0 {
		w.failures[fmt.Sprint("v", bad)] = int64(5 + r.IntN(60))
	}
	if never := r.IntN(6); never > 1 {
		w.broken[fmt.Sprint("v", never)] = true
	}
	w.ready()
	for range 4 + r.IntN(8) {
		w.run(1 + r.IntN(60))
		w.disturb(r)
	}
	w.crashAt, w.ro.Spec.Paused = 0, false
	w.run(1)
	w.until("at rest", func() bool { return w.atRest() })
	w.checkQuiet()
}

// disturb does one thing that happens in clusters.
func (w *world) disturb(r *rand.Rand) {
	switch r.IntN(6) {
	case 0, 1, 2:
		w.setTemplate(fmt.Sprint("v", 1+r.IntN(5)))
	case 3:
		w.dep.replicas = int32(1 + r.IntN(9))
		w.say("user: scales to %d", w.dep.replicas)
	case 4:
		w.crashAt = w.acted + 1 + r.IntN(4)
	case 5:
		w.ro.Spec.Paused = !w.ro.Spec.Paused
		w.say("user: paused %v", w.ro.Spec.Paused)
	}
}

// atRest is Ready on what Git says, or rolled back to stable.
func (w *world) atRest() bool {
	if w.rolledBack() {
		return w.split == nil && w.dep.paused
	}
	r := w.newest()
	return w.is("Stable") && r != nil && w.ro.Status.Stable.Revision == r.revision && w.split == nil
}
