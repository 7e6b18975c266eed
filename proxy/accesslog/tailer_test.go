// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// collected gathers lines; it may be read while they come.
type collected struct {
	mu      sync.Mutex
	lines   []string
	dropped int
}

func (c *collected) sink() *lines {
	return &lines{
		line: func(l []byte) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lines = append(c.lines, string(l))
		},
		dropped: func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.dropped++
		},
	}
}

// countedLines is a sink that needs nothing again of what it took.
type countedLines struct {
	*lines
	taken int64
}

func (c *countedLines) Take(chunk []byte) {
	c.add(chunk)
	c.taken += int64(len(chunk))
}

func (c *countedLines) Finish() error {
	c.finish()
	return nil
}

func (c *countedLines) Save() (int64, error) { return c.taken, nil }

func (c *collected) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lines)
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	for name, test := range map[string]struct {
		chunks  []string
		want    []string
		dropped int
	}{
		"whole lines":                            {[]string{"a\nb\n"}, []string{"a", "b"}, 0},
		"a line in pieces waits for its end":     {[]string{"a", "b", "c\nd", "\n"}, []string{"abc", "d"}, 0},
		"an empty line is a line":                {[]string{"\n"}, []string{""}, 0},
		"what has no end is dropped":             {[]string{"a\nb"}, []string{"a"}, 1},
		"a line that is too long is dropped":     {[]string{"a\n" + long + "\nb\n"}, []string{"a", "b"}, 1},
		"a long line in pieces is dropped once":  {[]string{long[:maxLine], long, long, "x\nb\n"}, []string{"b"}, 1},
		"a long line in two pieces":              {[]string{long[:maxLine], "yy\nb\n"}, []string{"b"}, 1},
		"the longest line that is read":          {[]string{long[:maxLine] + "\n"}, []string{long[:maxLine]}, 0},
		"a long line that never ends":            {[]string{long, long}, nil, 1},
		"nothing at all":                         {nil, nil, 0},
		"a piece that is empty changes nothing":  {[]string{"a", "", "b\n"}, []string{"ab"}, 0},
		"an end in a piece of its own ends once": {[]string{"a", "\n", "\n"}, []string{"a", ""}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var c collected
			l := c.sink()
			for _, chunk := range test.chunks {
				l.add([]byte(chunk))
			}
			l.finish()
			if diff := cmp.Diff(test.want, c.lines); diff != "" || c.dropped != test.dropped {
				t.Errorf("dropped %d, want %d; lines (-want +got):\n%s", c.dropped, test.dropped, diff)
			}
		})
	}
}

// FuzzLines checks that it does not matter where a stream is cut.
func FuzzLines(f *testing.F) {
	f.Add("a\nbb\n\nccc", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var whole, pieces collected
		l := whole.sink()
		l.add([]byte(text))
		l.finish()
		l = pieces.sink()
		random := rand.New(rand.NewPCG(seed, 0))
		for rest := text; rest != ""; {
			n := 1 + random.IntN(len(rest))
			l.add([]byte(rest[:n]))
			rest = rest[n:]
		}
		l.finish()
		if diff := cmp.Diff(whole.lines, pieces.lines); diff != "" || whole.dropped != pieces.dropped {
			t.Errorf("dropped %d or %d; lines (-whole +pieces):\n%s", whole.dropped, pieces.dropped, diff)
		}
	})
}

// openTestLog opens an access log in memory, as in a pod.
func openTestLog(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// memoryDir is a folder with a short name (a unix socket's path has at most 107
// characters) in memory, because that is what pods have.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "serin") //nolint:usetesting // t.TempDir is neither
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestEveryLineOfAGrowingLogIsReadOnce has two writers append to the log as
// nginx's workers do, in writes that end anywhere, while it is followed.
func TestEveryLineOfAGrowingLogIsReadOnce(t *testing.T) {
	path := filepath.Join(memoryDir(t), "access.log")
	file := openTestLog(t, path)
	var c collected
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	tailer := NewTailer(file, 0, fake, &countedLines{lines: c.sink()})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- tailer.Run(t.Context(), stop) }()

	const writers, linesEach = 2, 50000
	padding := strings.Repeat("p", 60)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer out.Close() //nolint:errcheck // its writes were checked
			var buffer []byte
			for i := range linesEach {
				buffer = fmt.Appendf(buffer, "%d %d %s\n", w, i, padding)
				if len(buffer) > 60000 || i == linesEach-1 {
					if _, err := out.Write(buffer); err != nil {
						t.Error(err)
					}
					buffer = buffer[:0]
					fake.Step(tailInterval)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, line := range c.lines {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d %d", &w, &i); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		writer := strconv.Itoa(w)
		if i != next[writer] {
			t.Fatalf("writer %d: line %d after line %d", w, i, next[writer]-1)
		}
		next[writer]++
	}
	if c.count() != writers*linesEach || c.dropped != 0 {
		t.Errorf("read %d lines and dropped %d, want %d and none", c.count(), c.dropped, writers*linesEach)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	occupied := info.Sys().(*syscall.Stat_t).Blocks * 512
	if occupied > 2*DiscardBytes {
		t.Errorf("%d bytes of %d are still occupied, want at most %d", occupied, info.Size(), 2*DiscardBytes)
	}
}

func TestTailingEndsWithItsContext(t *testing.T) {
	file := openTestLog(t, filepath.Join(memoryDir(t), "access.log"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c collected
	err := NewTailer(file, 0, clocktesting.NewFakeClock(time.Unix(0, 0)), &countedLines{lines: c.sink()}).Run(ctx, nil)
	if err != context.Canceled { //nolint:errorlint // that very error
		t.Errorf("got %v", err)
	}
}

// saved is a sink that has saved less than it took.
type saved struct {
	position int64
	taken    int64
	finished bool
}

func (s *saved) Take(chunk []byte)    { s.taken += int64(len(chunk)) }
func (s *saved) Save() (int64, error) { return s.position, nil }
func (s *saved) Finish() error        { s.finished = true; return nil }

func TestNothingIsDiscardedThatANextAgentNeeds(t *testing.T) {
	file := openTestLog(t, filepath.Join(memoryDir(t), "access.log"))
	const size = 2 * DiscardBytes
	if _, err := file.Write([]byte(strings.Repeat("x", size))); err != nil {
		t.Fatal(err)
	}
	s := &saved{position: DiscardBytes + pageBytes/2}
	f := NewTailer(file, 0, clocktesting.NewFakeClock(time.Unix(0, 0)), s)
	if err := f.CatchUp(); err != nil {
		t.Fatal(err)
	}
	if s.taken != size || f.read != size {
		t.Errorf("%d bytes were taken and %d read, want %d", s.taken, f.read, size)
	}
	if f.discarded != DiscardBytes {
		t.Errorf("discarded up to %d, want the page of %d", f.discarded, s.position)
	}
	got := make([]byte, 1)
	if _, err := file.ReadAt(got, s.position); err != nil || got[0] != 'x' {
		t.Errorf("at the saved position there is %q (%v)", got, err)
	}
}

func TestTailingGoesOnInTheMiddleOfAPage(t *testing.T) {
	file := openTestLog(t, filepath.Join(memoryDir(t), "access.log"))
	const from = 3*pageBytes + 5
	if _, err := file.Write([]byte(strings.Repeat("x", from+100))); err != nil {
		t.Fatal(err)
	}
	s := &saved{}
	f := NewTailer(file, from, clocktesting.NewFakeClock(time.Unix(0, 0)), s)
	stop := make(chan struct{})
	close(stop)
	if err := f.Run(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	if s.taken != 100 || !s.finished {
		t.Errorf("%d bytes were taken after the stop, want 100 (finished: %v)", s.taken, s.finished)
	}
	if f.discarded != 3*pageBytes {
		t.Errorf("the next hole begins at %d, want the page of %d", f.discarded, int64(from))
	}
}
