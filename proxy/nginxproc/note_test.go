// SPDX-License-Identifier: Apache-2.0

package nginxproc

import (
	"testing"

	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// An agent may be killed at any moment. What it has written by then is read by the next.
func TestTheNoteOfAMasterIsNeverHalf(t *testing.T) {
	folder := conf.Instance(t.TempDir())
	const pid = 4711
	if err := note(folder, pid); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		for range 2000 {
			if err := note(folder, pid); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for len(written) == 0 {
		m, err := FindMaster(folder)
		if err != nil || m == nil || m.PID != pid {
			t.Fatalf("found %+v, %v", m, err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}
