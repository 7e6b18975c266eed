// SPDX-License-Identifier: Apache-2.0

package nginxproc

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupMembers(t *testing.T) {
	proc := t.TempDir()
	process := func(pid int, stat, cmdline string) {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		if err := errors.Join(
			os.MkdirAll(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "stat"), []byte(stat), 0o600),
			os.WriteFile(filepath.Join(folder, "cmdline"), []byte(cmdline), 0o600),
		); err != nil {
			t.Fatal(err)
		}
	}
	process(10, "10 (nginx) S 1 10 1 0", "nginx: master process nginx\x00")
	process(11, "11 (nginx) S 10 10 1 0", "nginx: worker process\x00")
	process(12, "12 (nginx) S 10 10 1 0", "nginx: worker process is shutting down\x00")
	process(13, "13 (nginx) S 10 10 1 0", "nginx: master process nginx\x00") // just forked
	process(14, "14 (a) 10 b) S 10 9 1 0", "nginx: worker process\x00")
	process(15, "", "")                                                        // just ended
	process(16, "16 (nginx) S 1 10 1 0", "nginx: worker process\x00")          // its master was killed
	process(17, "17 (nginx) Z 1 10 1 0", "")                                   // not collected yet
	process(18, "18 (sh) S 1 10 1 0", "sh\x00-c\x00nginx: worker process\x00") // of another program
	if err := os.Mkdir(filepath.Join(proc, "19"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(proc, "self"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := groupMembers(proc, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{{10, false}, {11, true}, {12, false}, {13, false}, {16, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := Accepting(got); n != 2 {
		t.Errorf("%d accept connections, want 2", n)
	}
}

func TestErrorWriter(t *testing.T) {
	var out strings.Builder
	e := &errorWriter{out: &out}
	cause := errors.New("cause")
	if got := e.explain(cause); got.Error() != "cause" {
		t.Errorf("got %v", got)
	}
	text := "2026/01/01 [error] 1#1: something\n2026/01/01 [emerg] 1#1: bind() failed\n"
	if _, err := io.WriteString(e, text); err != nil {
		t.Fatal(err)
	}
	if got := e.explain(cause); !errors.Is(got, cause) || got.Error() != "cause; nginx says: 1#1: bind() failed" {
		t.Errorf("got %v", got)
	}
	if diff := cmp.Diff(text, out.String()); diff != "" {
		t.Errorf("passed on (-want +got):\n%s", diff)
	}
	e.reset()
	if got := e.explain(cause); got.Error() != "cause" {
		t.Errorf("after a reset: %v", got)
	}
}
