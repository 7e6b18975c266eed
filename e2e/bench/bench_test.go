// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// What a complete promoted release of ten pods with two weights may cost. A write that is refused since
// the Deployment controller's came first is one more.
const (
	mostWrites    = 9
	mostConflicts = 2
	mostEvents    = 4
	mostReads     = 1 // of the Deployment, before the canary is handed over to it
)

// conflicts are the requests that were refused since another writer came first.
func conflicts(t Tally) (n int) {
	for what, count := range t.Failed {
		if strings.HasSuffix(what, fmt.Sprintf(": %d", http.StatusConflict)) {
			n += count
		}
	}
	return n
}

func TestAReleaseCostsFewRequestsAndIdleRolloutsNone(t *testing.T) {
	plane, stop, err := ownPlane(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	report, err := Run(t.Context(), Options{
		Sizes: []int{1, 20}, Idle: 50, IdleFor: 20 * time.Second, Hold: 3 * time.Second,
		Replicas: func(size int) int32 { return map[int]int32{1: 10, 20: 3}[size] },
		Plane:    plane, Out: t.Output(), Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	report.Write(t.Output())
	one := report.Releases[0].Tally
	if n, again := one.Sum(ClassWrite), conflicts(one); n == 0 || n-again > mostWrites || again > mostConflicts {
		t.Errorf("%d writes, %d of them refused by conflicts, want 1 to %d and at most %d:\n%s", n, again, mostWrites, mostConflicts, one)
	}
	if n := one.Sum(ClassEvent); n == 0 || n > mostEvents {
		t.Errorf("%d events, want 1 to %d:\n%s", n, mostEvents, one)
	}
	for _, r := range report.Releases {
		if n := r.Tally.Sum(ClassRead); n > mostReads*r.Size {
			t.Errorf("%d live reads at %d releases:\n%s", n, r.Size, r.Tally)
		}
		if r.CPU == 0 || r.Peak < 1<<20 || r.Reaction.Template.Of != r.Size {
			t.Errorf("at %d releases not everything was measured: %+v", r.Size, r)
		}
	}
	if n := report.Idle.Tally.Requests(); n > 0 {
		t.Errorf("%d requests while nothing happened:\n%s", n, report.Idle.Tally)
	}
	if again := report.Idle.Restart.Tally; again.Sum(ClassWrite)+again.Sum(ClassEvent) > 0 {
		t.Errorf("a restart wrote where nothing was to be done:\n%s", again)
	}
}

func TestOptionsThatMeasureNothingAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no release":        {Sizes: []int{0}},
		"fewer than none":   {Idle: -1},
		"an empty room":     {PerNamespace: -1},
		"no time to settle": {Hold: time.Millisecond},
	} {
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
