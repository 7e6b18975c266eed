// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestAShareOfGarbageIsKeptAndSomeAtLeast(t *testing.T) {
	for name, test := range map[string]struct {
		used        uint64
		usual, want int
		starting    bool
	}{
		"of much, the usual share":             {used: 32 << 20, usual: 50, want: 50},
		"of less, as much as of that":          {used: 16 << 20, usual: 50, want: 100},
		"of nothing, as of a little":           {usual: 50, want: 400},
		"in the start, a smaller share":        {used: 100 << 20, usual: 50, starting: true, want: startGC},
		"and of less, as much as usually":      {used: 16 << 20, usual: 50, starting: true, want: 100},
		"in the start, no larger one":          {used: 400 << 20, usual: 10, starting: true, want: 10},
		"where none is collected, none is now": {used: 16 << 20, usual: -1, starting: true, want: -1},
	} {
		if got := garbageShare(test.used, test.usual, test.starting); got != test.want {
			t.Errorf("%s: %d %%, want %d", name, got, test.want)
		}
	}
}

// percentage is that of garbage which is kept now.
func percentage() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// collect collects garbage until as much is kept as is wanted: what is decided after a collection
// is decided beside the program.
func collect(t *testing.T, when string, want func(percent int) bool) {
	t.Helper()
	for range 1000 {
		if want(percentage()) {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Fatalf("%s it keeps %d %%", when, percentage())
}

func TestAReplicaWithoutTheLeaseKeepsLittleGarbageAtTheStartAlone(t *testing.T) {
	const usual = 70
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	mgr, clock := newRecording(t, managerOptions{splits: traffic.Served{Version: splitv1.GroupVersion.Version}}), clocktesting.NewFakeClock(time.Now())
	if err := addRelease(mgr, clock); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	for _, r := range mgr.added {
		if all, ok := r.(manager.LeaderElectionRunnable); ok && !all.NeedLeaderElection() {
			go func() { ended <- r.Start(t.Context()) }()
		}
	}
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	much := make([]byte, 100<<20)
	collect(t, "while it keeps much", func(percent int) bool { return percent == startGC })
	runtime.KeepAlive(much)
	collect(t, "while it keeps little", func(percent int) bool { return percent > usual })
	much = make([]byte, 100<<20)
	collect(t, "while it keeps much again", func(percent int) bool { return percent == startGC })
	clock.Step(releases * startUp)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := percentage(); got != usual {
		t.Errorf("after the start it keeps %d %%", got)
	}
	runtime.KeepAlive(much)
}
