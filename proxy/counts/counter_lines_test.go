// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"
)

// Lines that are taken together count as those that are taken one by one, also when they
// are more different ones than are remembered, cut anywhere, or not to be understood.
func TestLinesCountAsOftenAsTheyAreThere(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	var log []byte
	for range 20_000 {
		switch random.IntN(50) {
		case 0:
			log = append(log, "what is this\n"...)
		case 1:
			log = append(log, unasked...)
		default:
			kind := []string{"split", "sticky", "unmatched", "mirrored", "dropped"}[random.IntN(5)]
			status := []int{200, 404, 499, 500}[random.IntN(4)]
			client := fmt.Sprintf("10.0.%d.%d", random.IntN(6), random.IntN(250))
			log = append(log, logged(fmt.Sprint("b", random.IntN(3)), strconv.Itoa(status), kind, after(random.IntN(20)), from(client))...)
		}
	}
	counted := func(next func(rest []byte) int) state {
		c := New("", clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)))
		c.state.Services = map[string]string{"b0": "web-stable", "b1": "web-canary"} // b2 is not known
		for rest := log; len(rest) > 0; {
			n := next(rest)
			c.Take(rest[:n])
			rest = rest[n:]
		}
		return c.state
	}
	want := counted(func(rest []byte) int { return bytes.IndexByte(rest, '\n') + 1 })
	if want.Flows.Folded == 0 || want.Dropped == 0 || want.Unrouted["503"] == 0 || len(want.Kinds) < 4 {
		t.Fatalf("the log holds too little: %+v", want)
	}
	for name, next := range map[string]func(rest []byte) int{
		"at once":   func(rest []byte) int { return len(rest) },
		"in chunks": func(rest []byte) int { return min(len(rest), 1+random.IntN(70_000)) },
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, counted(next), cmp.AllowUnexported(flows{}), cmpopts.EquateComparable()); diff != "" {
				t.Errorf("one by one (-) and %s (+):\n%s", name, diff)
			}
		})
	}
}
