// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/serin-dev/serin/e2e/cluster"
)

// TestAKernelThatCannotIsToldFromAFailure has programs end as the one that enforces policies does.
func TestAKernelThatCannotIsToldFromAFailure(t *testing.T) {
	for script, impossible := range map[string]bool{"echo why >&2; exit 3": true, "echo why >&2; exit 1": false} {
		e := &Enforcer{program: exec.Command("sh", "-c", script)}
		e.program.Stderr = &e.said
		e.end = e.program.Run()
		err := e.failure()
		if errors.Is(err, cluster.ErrNotPossible) != impossible || !strings.Contains(err.Error(), "why") {
			t.Errorf("%s: the error is %v", script, err)
		}
	}
}

// TestPodsAreConcernedAsTheProgramSays reads lines that the program printed.
func TestPodsAreConcernedAsTheProgramSays(t *testing.T) {
	e := &Enforcer{}
	check := func(want map[string]bool) {
		t.Helper()
		for address, concerned := range want {
			if e.Concerns(address) != concerned {
				t.Errorf("%s is concerned: %t", address, !concerned)
			}
		}
	}
	check(map[string]bool{"10.244.0.4": false})
	e.read(strings.NewReader("concerned: [10.244.0.4 10.244.0.41]\n"))
	check(map[string]bool{"10.244.0.4": true, "10.244.0.41": true, "10.244.0.1": false})
	e.read(strings.NewReader("another line\nconcerned: [10.244.0.41]\n"))
	check(map[string]bool{"10.244.0.4": false, "10.244.0.41": true})
	e.read(strings.NewReader("concerned: []\n"))
	check(map[string]bool{"10.244.0.41": false, "": false})
}

// TestTheQueueIsFoundInTheKernelsTable reads a line that Linux printed.
func TestTheQueueIsFoundInTheKernelsTable(t *testing.T) {
	const line, other = "  100 2561858060     6 2   128     2   635    39214  1\n", "    7   8123     0 2   128     0     0        3  1\n"
	want := Packets{Bound: true, Queued: 39214, Dropped: 637}
	for table, want := range map[string]Packets{"": {}, other: {}, line: want, other + line: want, line + other: want} {
		if got := readPackets(table); got != want {
			t.Errorf("got %+v, want %+v, of %q", got, want, table)
		}
	}
}
