// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// has reports whether a backend has a bucket by a table, as nginx looks it up.
func has(tb testing.TB, table string, listener int, id string, bucket int) bool {
	tb.Helper()
	info, err := os.Stat(filepath.Join(table, conf.Folder(listener, id), twoDigits(bucket/hundred), twoDigits(bucket%hundred)))
	if err != nil {
		tb.Error(err)
		return false
	}
	return info.Mode()&0o100 != 0
}

// hasWhole reports whether a backend has all of a part by a table, as nginx looks it up.
func hasWhole(tb testing.TB, table string, listener int, id string, part int) bool {
	tb.Helper()
	info, err := os.Stat(filepath.Join(table, conf.Whole(listener, id, twoDigits(part))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Error(err)
	}
	return err == nil && info.IsDir()
}

// looked looks every bucket of a listener up, and counts who has it.
func looked(t *testing.T, table string, listener int, ids ...string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for bucket := range conf.Buckets {
		owners := 0
		for _, id := range ids {
			if has(t, table, listener, id, bucket) {
				counts[id]++
				owners++
			} else if hasWhole(t, table, listener, id, bucket/buckets) {
				t.Fatalf("%s has all of a part, but not the bucket %d", id, bucket)
			}
		}
		if owners > 1 {
			t.Fatalf("bucket %d has %d backends", bucket, owners)
		}
	}
	return counts
}

func testTables(tb testing.TB) *Tables {
	tb.Helper()
	made, err := New(conf.Instance(proxytest.MemoryDir(tb)))
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// weights are the table of one listener, and another that is always the same.
func weights(ranges ...conf.Range) conf.Table {
	return conf.Table{{Listener: 0, Ranges: ranges}, {Listener: 3, Ranges: []conf.Range{{Target: "x", Buckets: conf.Buckets}}}}
}

func TestEveryBucketHasTheBackendThatItsRangeSays(t *testing.T) {
	tb := testTables(t)
	for _, buckets := range [][3]int{{10000, 0, 0}, {9999, 1, 0}, {1, 4999, 5000}, {0, 150, 9850}, {50, 20, 9930}, {0, 0, 0}} {
		if err := tb.Write(weights(
			conf.Range{Target: "a", Buckets: buckets[0]}, conf.Range{Target: "b", Buckets: buckets[1]}, conf.Range{Target: "c", Buckets: buckets[2]},
		)); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		for i, id := range []string{"a", "b", "c"} {
			if buckets[i] > 0 {
				want[id] = buckets[i]
			}
		}
		for _, table := range []string{tb.folder.First(), tb.folder.Second()} {
			if diff := cmp.Diff(want, looked(t, table, 0, "a", "b", "c")); diff != "" {
				t.Errorf("%v: listener 0 (-want +got):\n%s", buckets, diff)
			}
			if diff := cmp.Diff(map[string]int{"x": conf.Buckets}, looked(t, table, 3, "x")); diff != "" {
				t.Errorf("%v: listener 3 (-want +got):\n%s", buckets, diff)
			}
		}
	}
}

// Of the weights of most releases the digits of a bucket decide nothing.
func TestAPartIsWholeWhenOneBackendHasAllOfIt(t *testing.T) {
	tb := testTables(t)
	for _, shared := range [][3]int{{10000, 0, 0}, {9500, 500, 0}, {9550, 450, 0}, {1, 4999, 5000}, {50, 20, 9930}, {0, 0, 0}} {
		if err := tb.Write(weights(
			conf.Range{Target: "a", Buckets: shared[0]}, conf.Range{Target: "b", Buckets: shared[1]}, conf.Range{Target: "c", Buckets: shared[2]},
		)); err != nil {
			t.Fatal(err)
		}
		for part := range conf.Parts {
			for _, id := range []string{"a", "b", "c"} {
				n := 0
				for bucket := range buckets {
					if has(t, tb.folder.First(), 0, id, part*buckets+bucket) {
						n++
					}
				}
				if got := hasWhole(t, tb.folder.First(), 0, id, part); got != (n == buckets) {
					t.Errorf("%v: %s has %d of the part %d, all of it: %t", shared, id, n, part, got)
				}
			}
		}
	}
}

// TestNoLookUpFailsWhileTablesChange looks buckets up all the time while
// the table is replaced as fast as it can be.
func TestNoLookUpFailsWhileTablesChange(t *testing.T) {
	tb := testTables(t)
	a := weights(conf.Range{Target: "a", Buckets: conf.Buckets}, conf.Range{Target: "b"})
	b := weights(conf.Range{Target: "a"}, conf.Range{Target: "b", Buckets: conf.Buckets})
	if err := tb.Write(a); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var done [2]atomic.Int64 // look-ups of each reader
	for i := range done {
		wg.Go(func() {
			for bucket := 0; ; bucket = (bucket + 7) % conf.Buckets {
				select {
				case <-stop:
					return
				default:
				}
				for _, table := range []string{tb.folder.First(), tb.folder.Second()} {
					has(t, table, 0, "a", bucket)
					has(t, table, 0, "b", bucket)
					hasWhole(t, table, 0, "a", bucket/buckets)
				}
				if t.Failed() {
					return
				}
				done[i].Add(1)
			}
		})
	}
	for range 100 {
		for _, table := range []conf.Table{b, a} {
			before := [2]int64{done[0].Load(), done[1].Load()}
			if err := tb.Write(table); err != nil {
				t.Error(err)
			}
			// A reader may be held up in the middle, but not for many generations.
			for i := range done {
				for done[i].Load() == before[i] && !t.Failed() {
					runtime.Gosched()
				}
			}
		}
	}
	close(stop)
	wg.Wait()
}

func TestPreviousTablesAreRemoved(t *testing.T) {
	tb := testTables(t)
	table := weights(conf.Range{Target: "a", Buckets: conf.Buckets})
	for range keptGenerations + 3 {
		if err := tb.Write(table); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := Open(tb.folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tb, opened, cmp.AllowUnexported(Tables{})); diff != "" {
		t.Errorf("as another agent finds them (-want +got):\n%s", diff)
	}
	if err := opened.Write(table); err != nil {
		t.Fatal(err)
	}
	left := names(t, string(tb.folder))
	if len(left) != keptGenerations+5 || !slices.Contains(left, "weights-20") || slices.Contains(left, "weights-4") {
		t.Errorf("%v are left, want the last %d generations and what stays", left, keptGenerations)
	}
}

func TestClosingOutlastsWeights(t *testing.T) {
	tb := testTables(t)
	if err := tb.Write(weights(conf.Range{Target: "a", Buckets: conf.Buckets})); err != nil {
		t.Fatal(err)
	}
	if err := tb.AskToClose(); err != nil {
		t.Fatal(err)
	}
	if err := tb.Write(weights(conf.Range{Target: "b", Buckets: conf.Buckets})); err != nil {
		t.Fatal(err)
	}
	if got := names(t, tb.folder.First()); got != nil {
		t.Errorf("the first look-up finds %v, want nothing", got)
	}
	if diff := cmp.Diff(map[string]int{"b": conf.Buckets}, looked(t, tb.folder.Second(), 0, "b")); diff != "" {
		t.Errorf("the second look-up (-want +got):\n%s", diff)
	}
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// BenchmarkWeights writes new weights of one listener.
func BenchmarkWeights(b *testing.B) {
	t := testTables(b)
	table := weights(conf.Range{Target: "a", Buckets: 9450}, conf.Range{Target: "b", Buckets: 550})
	for b.Loop() {
		if err := t.Write(table); err != nil {
			b.Fatal(err)
		}
	}
}
