// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOrphansAreCollectedAndOwnChildrenAreNot makes this process adopt orphans,
// as process 1 of a container does.
func TestOrphansAreCollectedAndOwnChildrenAreNot(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	own := exec.Command("true")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	// The shell ends at once; what it started in another session is orphaned.
	out, err := exec.Command("sh", "-c", "setsid sh -c 'sleep 0.1' >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	orphan := strings.TrimSpace(string(out))
	state := func(pid string) procStat {
		data, err := readProc("/proc/" + pid + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		return parseStat(data)
	}
	eventually(t, "both have ended", func() bool {
		s := state(orphan)
		return s.zombie && s.parent == os.Getpid() && state(strconv.Itoa(own.Process.Pid)).zombie
	})
	if err := reapOrphans(); err != nil {
		t.Fatal(err)
	}
	if s := state(orphan); s.zombie {
		t.Errorf("the orphan %s is still there: %+v", orphan, s)
	}
	if err := own.Wait(); err != nil {
		t.Errorf("the child's end was taken from its parent: %v", err)
	}
}
