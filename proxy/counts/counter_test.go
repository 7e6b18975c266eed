// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/proxy/accesslog"
)

// logged is a line of the access log about a request that a backend answered; the fields
// that are given replace those of an answer without a time.
func logged(backend, code, kind string, change ...func(*accesslog.Fields)) string {
	f := accesslog.Fields{
		Backend: backend, Address: "10.96.0.1:80", Status: code, ResponseTime: accesslog.Absent, HeaderTime: accesslog.Absent,
		Completion: accesslog.Complete, Kind: kind, Client: "10.0.0.7",
	}
	for _, c := range change {
		c(&f)
	}
	return f.Line() + "\n"
}

// after sets how long the backend took.
func after(ms int) func(*accesslog.Fields) {
	return func(f *accesslog.Fields) { f.ResponseTime = fmt.Sprintf("0.%03d", ms) }
}

// from sets the client.
func from(client string) func(*accesslog.Fields) {
	return func(f *accesslog.Fields) { f.Client = client }
}

// unasked is a line about a request that no backend was asked for.
var unasked = logged("", "503", accesslog.KindSplit, func(f *accesslog.Fields) { f.Address = accesslog.Absent })

// refused is a line about a request that the proxy did not take on.
var refused = strings.Replace(accesslog.Refused().Line(), "$status", "503", 1) + "\n"

// logLine is a line about a request to b1 that took so many milliseconds.
func logLine(kind, code string, ms int, completion string) string {
	return logged("b1", code, kind, after(ms), func(f *accesslog.Fields) { f.Completion = completion })
}

// counterOf is a counter that knows b1 and is kept in a file.
func counterOf(t *testing.T, file string) *Counter {
	t.Helper()
	c := New(file, clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)))
	if err := c.Load(); err != nil {
		t.Fatal(err)
	}
	if err := c.Know(types.NamespacedName{Namespace: "shop", Name: "web"}, map[string]string{"b1": "web-stable"}); err != nil {
		t.Fatal(err)
	}
	return c
}

// The next agent reads the log from the position on. In the middle of a line it would
// lose that line, or drop what is left of it.
func TestCounterEveryLineIsCountedOnceWhereverAnAgentIsKilled(t *testing.T) {
	log := logLine("split", "200", 12, "OK") + logLine("split", "500", 40, "") + logLine("sticky", "200", 7, "OK")
	ends := map[int64]bool{0: true}
	for i, c := range log {
		if c == '\n' {
			ends[int64(i)+1] = true
		}
	}
	for first := range len(log) + 1 {
		for second := first; second <= len(log); second += 7 {
			file := filepath.Join(t.TempDir(), "counts")
			before := counterOf(t, file)
			before.Take([]byte(log[:first]))
			before.Take([]byte(log[first:second]))
			position, err := before.Save()
			if err != nil {
				t.Fatal(err)
			}
			if !ends[position] || position > int64(second) {
				t.Fatalf("after %d and %d bytes the position is %d, in the middle of a line", first, second, position)
			}
			after := counterOf(t, file)
			after.Take([]byte(log[after.Position():]))
			got := after.state.Kinds[accesslog.KindSplit]["web-stable"]
			want := map[string]uint64{"200": 2, "500": 1}
			if diff := cmp.Diff(want, got.Requests); diff != "" || after.state.Dropped != 0 || got.Incomplete != 1 || got.Millis != 59 {
				t.Fatalf("killed after %d and %d bytes it drops %d, %d incomplete, %d ms; requests (-want +got):\n%s",
					first, second, after.state.Dropped, got.Incomplete, got.Millis, diff)
			}
		}
	}
}

func TestCounterCountsWhatALineSays(t *testing.T) {
	c := counterOf(t, filepath.Join(t.TempDir(), "counts"))
	c.Take([]byte(strings.Repeat(logLine("split", "200", 12, "OK"), 3)))
	c.Take([]byte(strings.Repeat(logLine("sticky", "502", 0, ""), 2)))
	c.Take([]byte(logged("b1", "502", accesslog.KindSplit)))
	c.Take([]byte(strings.Repeat(unasked, 2)))
	c.Take([]byte(strings.Repeat(refused, 3)))
	c.Take([]byte(strings.Repeat(strings.Replace(logLine("split", "200", 12, "OK"), "b1", "b9", 1), 2)))
	c.Take([]byte(strings.Repeat("noise\n", 2)))
	c.Take([]byte(strings.Repeat(logLine("dropped", "503", 0, "OK"), 2)))
	c.Killed(2)
	c.Killed(-1)
	split, sticky := c.state.Kinds[accesslog.KindSplit]["web-stable"], c.state.Kinds[accesslog.KindSticky]["web-stable"]
	buckets := make([]uint64, len(durationBounds)+1)
	buckets[0], buckets[6] = 2, 3 // up to 1 ms, and up to 15 ms
	want := &serviceCounts{Requests: map[string]uint64{"200": 3, "502": 3}, Incomplete: 2, Buckets: buckets, Millis: 36}
	if diff := cmp.Diff(want, split); diff != "" {
		t.Errorf("of the split (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"502": 2}, sticky.Requests); diff != "" {
		t.Errorf("of clients that come back (-want +got):\n%s", diff)
	}
	if s := c.state; s.Unrouted["503"] != 5 || s.Refused != 3 || s.Dropped != 4 || s.CopyDrops["web-stable"] != 2 || s.Killed != 2 {
		t.Errorf("unrouted %v, refused %d, dropped %d, copies %v, workers %d", s.Unrouted, s.Refused, s.Dropped, s.CopyDrops, s.Killed)
	}
}

func TestCounterMillisecondsAreRounded(t *testing.T) {
	for ms := range uint64(3000) {
		if got := millis(float64(ms) / 1000); got != ms {
			t.Fatalf("%d ms count as %d", ms, got)
		}
	}
}

func TestCounterWithoutAFileBeginsAtZeroAndABrokenOneIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	c := New(file, clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)))
	if err := c.Load(); err != nil || c.Position() != 0 {
		t.Errorf("position %d, %v", c.Position(), err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(); err == nil {
		t.Error("counts that can't be read are no error")
	}
}
