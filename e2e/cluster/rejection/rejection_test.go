// SPDX-License-Identifier: Apache-2.0

package rejection

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOnlyWhatTheNodeLedNowhereIsNoted reads lines that nft printed about connections to a port
// that a Service lacks, and to a Service without endpoints.
func TestOnlyWhatTheNodeLedNowhereIsNoted(t *testing.T) {
	lines, err := os.Open("testdata/trace.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close() //nolint:errcheck // it was only read
	begin := time.Unix(100, 0)
	r, now := &Recorder{}, begin
	r.read(lines, func() time.Time { now = now.Add(time.Second); return now })
	want := []Rejection{
		{Time: begin.Add(time.Second), Address: "10.96.8.61:80"},
		{Time: begin.Add(2 * time.Second), Address: "10.96.8.61:53"},
	}
	if diff := cmp.Diff(want, r.Since(begin)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], r.Since(want[0].Time)); diff != "" {
		t.Errorf("after the first, -want +got:\n%s", diff)
	}
}
