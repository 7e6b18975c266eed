// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal lines are counted together, each as often as it is there, also when there are more
// different ones than are remembered, and wherever the log is cut.
func TestReaderCountsEachLineOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	var log strings.Builder
	want := map[string]uint64{}
	for range 20_000 {
		client := fmt.Sprintf("10.0.%d.%d", random.IntN(6), random.IntN(250))
		if random.IntN(50) == 0 {
			client = "unknown"
		}
		fmt.Fprintf(&log, "b1\t+\t200\t0.001\t-\tOK\tsplit\t%s\n", client)
		want[client]++
	}
	whole := log.Len()
	log.WriteString("b1\t+\t200\t0.0") // its end never comes
	for name, next := range map[string]func(rest int) int{
		"at once":   func(rest int) int { return rest },
		"in chunks": func(rest int) int { return min(rest, 1+random.IntN(70_000)) },
		"by bytes":  func(rest int) int { return min(rest, 1+random.IntN(7)) },
	} {
		t.Run(name, func(t *testing.T) {
			got, dropped, position := map[string]uint64{}, 0, int64(0)
			r := NewReader(func(e Entry) {
				client := "unknown"
				if e.Valid {
					client = e.Record.Client.String()
				}
				got[client] += e.N
			}, func() { dropped++ })
			for rest := log.String(); rest != ""; {
				n := next(len(rest))
				position += r.Take([]byte(rest[:n]))
				rest = rest[n:]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if position != int64(whole) {
				t.Errorf("counted up to %d, want %d", position, whole)
			}
			r.Finish()
			if dropped != 1 {
				t.Errorf("%d lines are dropped, want the last one", dropped)
			}
		})
	}
}

// What a Line says is read back.
func TestParseReadsWhatALineSays(t *testing.T) {
	line := Fields{
		Backend: "b1", Address: Asked, Status: "200", ResponseTime: "0.020", HeaderTime: Absent, Completion: Complete, Kind: KindSticky, Client: "10.0.0.7",
	}.Line()
	r, err := Parse([]byte(line))
	if err != nil || r.Backend != "b1" || r.Code != "200" || r.Seconds != 0.02 || !r.Complete || r.Kind != KindSticky || r.Client.String() != "10.0.0.7" {
		t.Errorf("%q is read as %+v (%v)", line, r, err)
	}
}
