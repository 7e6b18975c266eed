// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/poll/fair"
)

// As many hostile namespaces wait as the controller has workers: an upgrade that waits holds none.
func TestUpgradesThatWaitHoldNoWorker(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	var running []func()
	for _, namespace := range []string{"a", "b", "c"} {
		_, release, err := r.grades.Acquire(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, release)
	}
	var turns []string
	ask := func(namespace string) error {
		return r.Adopt(t.Context(), releases.Request{
			Namespace: namespace, UID: types.UID(namespace), Turn: func() { turns = append(turns, namespace) },
			Still: func(context.Context) error { return releases.Failure("made") },
		})
	}
	var want []string
	for n := range 32 {
		want = append(want, fmt.Sprint("hostile", n))
	}
	want = append(want, "honest")
	for range 2 { // who comes again keeps its place
		for _, namespace := range want {
			if err := ask(namespace); !errors.As(err, new(releases.BusyError)) {
				t.Fatalf("%s: %v", namespace, err)
			}
		}
	}
	for n := range want {
		if n < len(running) {
			running[n]() // one upgrade ends, and each that has its turn ends another
		}
		if err := ask(turns[n]); err == nil || err.Error() != "made" {
			t.Fatalf("%s: %v", turns[n], err)
		}
	}
	if diff := cmp.Diff(want, turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if loads := r.grades.Loads(); len(loads) != 0 {
		t.Errorf("%v are left", loads)
	}
}

func TestAnUpgradeThatIsWithdrawnHasNoTurn(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	r.grades = fair.NewSlots(fair.Limits{Slots: 1, PerNamespace: 1})
	_, release, err := r.grades.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Adopt(t.Context(), releases.Request{Namespace: "b", UID: "b", Turn: func() { t.Error("it has a turn") }}); !errors.As(err, new(releases.BusyError)) {
		t.Error(err)
	}
	r.Withdraw("b")
	release()
	if loads := r.grades.Loads(); len(loads) != 0 {
		t.Errorf("%v are left", loads)
	}
}

func TestACallThatIsNotWantedAnyMoreWhenItsTurnComesIsNotMade(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	changed := releases.BusyError("changed")
	if err := r.Adopt(t.Context(), releases.Request{Namespace: "a", Still: func(context.Context) error { return changed }}); !errors.Is(err, changed) {
		t.Error(err)
	}
	if loads := r.grades.Loads(); len(loads) != 0 {
		t.Errorf("%v are left", loads)
	}
}

func TestACallWhoseTimeIsOverBeforeTheProcessBeginsWasInterrupted(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	ctx, cancel := context.WithCancel(t.Context())
	q := releases.Request{Namespace: "a", Still: func(context.Context) error { cancel(); return nil }}
	if err := r.Adopt(ctx, q); err == nil || !strings.Contains(err.Error(), "was interrupted") {
		t.Error(err)
	}
}

func TestAnUpgradeThatHangsGivesWayToThatOfAnotherNamespace(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exec sleep 3600"), Account: account})
	r.grades = fair.NewSlots(fair.Limits{Slots: 1, PerNamespace: 1, Waiting: 1, Keep: time.Millisecond})
	hangs := make(chan error)
	go func() { hangs <- r.Adopt(t.Context(), releases.Request{Namespace: "a"}) }()
	for r.grades.Loads()["a"].Held == 0 {
		runtime.Gosched()
	}
	_, release, err := r.grades.Acquire(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-hangs; err == nil || !strings.Contains(err.Error(), "another namespace waited") || errors.As(err, new(releases.BusyError)) {
		t.Error(err)
	}
}
