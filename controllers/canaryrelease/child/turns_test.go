// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/poll/fair"
)

func TestACallThatOthersComeBeforeIsNotMadeAndNoFailure(t *testing.T) {
	r := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Program: script(t, "exit 1"), Account: account})
	for _, namespace := range []string{"a", "b", "c"} {
		_, release, err := r.grades.Acquire(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, adopt := range map[string]func() error{
		"another namespace has the slots":     func() error { return r.Adopt(t.Context(), releases.Request{Namespace: "d"}) },
		"its own has one":                     func() error { return r.Adopt(t.Context(), releases.Request{Namespace: "a"}) },
		"it waits in the queue until the end": func() error { return r.Adopt(ended, releases.Request{Namespace: "d", Queue: true}) },
	} {
		if err := adopt(); !errors.As(err, new(releases.BusyError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := r.grades.Loads()["d"]; n.Waiting != 0 || n.Held != 0 {
		t.Errorf("%+v of d is left", n)
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
