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

// As many hostile namespaces wait as the controller has workers: what waits holds none.
func TestCallsThatWaitHoldNoWorker(t *testing.T) {
	for name, test := range map[string]struct {
		slots func(*Releases) *fair.Slots
		ask   func(*Releases, releases.Request) error
	}{
		"upgrades": {func(r *Releases) *fair.Slots { return r.grades }, func(r *Releases, q releases.Request) error { return r.Adopt(t.Context(), q) }},
		"renders": {func(r *Releases) *fair.Slots { return r.renders }, func(r *Releases, q releases.Request) error {
			_, err := r.Propose(t.Context(), q)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
			slots := test.slots(r)
			var running []func()
			for loads := slots.Loads(); len(loads) == len(running); loads = slots.Loads() { // until none is free
				_, release, err := slots.Claim(t.Context(), fmt.Sprint("first", len(running)), fmt.Sprint("first", len(running)), func() {})
				if err != nil {
					slots.Drop(fmt.Sprint("first", len(running)))
					break
				}
				running = append(running, release)
			}
			var turns []string
			ask := func(namespace string) error {
				return test.ask(r, releases.Request{Namespace: namespace, Name: "x", Turn: func() { turns = append(turns, namespace) }})
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
					running[n]() // one call ends, and each that has its turn ends another
				}
				if err := ask(turns[n]); err == nil || errors.As(err, new(releases.BusyError)) {
					t.Fatalf("%s: %v", turns[n], err)
				}
			}
			if diff := cmp.Diff(want, turns); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
			if loads := slots.Loads(); len(loads) != 0 {
				t.Errorf("%v are left", loads)
			}
		})
	}
}

func TestTheRenderOfAnUpgradeTakesNoSlotOfItsOwn(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	r.renders = fair.NewSlots(fair.Limits{Slots: 1, PerNamespace: 1})
	if _, _, err := r.renders.Claim(t.Context(), "b", "b", func() {}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Propose(t.Context(), releases.Request{Namespace: "a"}); err == nil || errors.As(err, new(releases.BusyError)) {
		t.Error(err)
	}
}

func TestACallThatIsWithdrawnHasNoTurn(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	one := fair.Limits{Slots: 1, PerNamespace: 1}
	r.grades, r.renders = fair.NewSlots(one), fair.NewSlots(one)
	var running []func()
	for _, slots := range r.Slots() {
		_, release, err := slots.Claim(t.Context(), "a", "a", func() {})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, release)
	}
	q := releases.Request{Namespace: "b", Name: "x", Turn: func() { t.Error("it has a turn") }}
	_, err := r.Propose(t.Context(), q)
	for _, err := range []error{err, r.Adopt(t.Context(), q)} {
		if !errors.As(err, new(releases.BusyError)) {
			t.Error(err)
		}
	}
	r.WithdrawUpgrade(types.NamespacedName{Namespace: "b", Name: "x"})
	r.WithdrawProposal(types.NamespacedName{Namespace: "b", Name: "x"})
	for _, release := range running {
		release()
	}
	for name, slots := range r.Slots() {
		if loads := slots.Loads(); len(loads) != 0 {
			t.Errorf("of %s are left: %v", name, loads)
		}
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
	r.grades = fair.NewSlots(fair.Limits{Slots: 1, PerNamespace: 1, Keep: time.Millisecond})
	hangs := make(chan error)
	go func() { hangs <- r.Adopt(t.Context(), releases.Request{Namespace: "a"}) }()
	for r.grades.Loads()["a"].Held == 0 {
		runtime.Gosched()
	}
	if _, _, err := r.grades.Claim(t.Context(), "b", "b", func() {}); !errors.Is(err, fair.ErrBusy) {
		t.Fatal(err)
	}
	if err := <-hangs; err == nil || !strings.Contains(err.Error(), "another namespace waited") || errors.As(err, new(releases.BusyError)) {
		t.Error(err)
	}
}
