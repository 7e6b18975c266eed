// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/controllers/traffic/nginx"
)

// looked follows every bucket of a listener, and counts where it leads.
func looked(t *testing.T, dir nginx.Dir, key string, listener int) map[string]int {
	t.Helper()
	targets := map[uint64]string{} // by inode
	for _, name := range names(t, dir.Targets()) {
		targets[inode(t, dir.Target(name))] = name
	}
	counts := map[string]int{}
	for bucket := range nginx.Buckets {
		counts[targets[inode(t, entry(dir, key, listener, bucket))]]++
	}
	return counts
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func entry(dir nginx.Dir, key string, listener, bucket int) string {
	return filepath.Join(dir.Current(key), strconv.Itoa(listener), twoDigits(bucket/hundred), twoDigits(bucket%hundred))
}

// lookUp follows a bucket step by step, as nginx does.
func lookUp(dir nginx.Dir, key string, listener, bucket int) (string, error) {
	target, err := filepath.EvalSymlinks(entry(dir, key, listener, bucket))
	return filepath.Base(target), err
}

func rendering(key string, ranges ...nginx.Range) nginx.Rendering {
	return nginx.Rendering{Key: key, Table: nginx.Table{{Listener: 0, Ranges: ranges}, {Listener: 3, Ranges: []nginx.Range{{Target: "x", Buckets: nginx.Buckets}}}}}
}

func TestEveryBucketLeadsWhereItsRangeSays(t *testing.T) {
	dir := nginx.Dir(memoryDir(t))
	tb := newTables(dir)
	for _, ranges := range [][]nginx.Range{
		{{Target: "a", Buckets: 10000}},
		{{Target: "a", Buckets: 9999}, {Target: "b", Buckets: 1}},
		{{Target: "a", Buckets: 1}, {Target: "b", Buckets: 4999}, {Target: "c", Buckets: 5000}},
		{{Target: nginx.NoTarget, Buckets: 10000}},
	} {
		if err := tb.write(rendering("k", ranges...)); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		for _, r := range ranges {
			want[r.Target] = r.Buckets
		}
		if diff := cmp.Diff(want, looked(t, dir, "k", 0)); diff != "" {
			t.Errorf("listener 0 (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{"x": nginx.Buckets}, looked(t, dir, "k", 3)); diff != "" {
			t.Errorf("listener 3 (-want +got):\n%s", diff)
		}
	}
}

// TestNoLookUpFindsNothingWhileTablesChange looks buckets up all the time while
// the table is replaced as fast as it can be.
func TestNoLookUpFindsNothingWhileTablesChange(t *testing.T) {
	dir := nginx.Dir(memoryDir(t))
	tb := newTables(dir)
	a, b := rendering("k", nginx.Range{Target: "a", Buckets: nginx.Buckets}), rendering("k", nginx.Range{Target: "b", Buckets: nginx.Buckets})
	if err := tb.write(a); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var done [2]atomic.Int64 // look-ups of each reader
	for i := range done {
		wg.Go(func() {
			for bucket := 0; ; bucket = (bucket + 7) % nginx.Buckets {
				select {
				case <-stop:
					return
				default:
				}
				if target, err := lookUp(dir, "k", 0, bucket); err != nil || target != "a" && target != "b" {
					t.Errorf("bucket %d leads to %q: %v", bucket, target, err)
					return
				}
				done[i].Add(1)
			}
		})
	}
	for range 100 {
		for _, r := range []nginx.Rendering{b, a} {
			before := [2]int64{done[0].Load(), done[1].Load()}
			if err := tb.write(r); err != nil {
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

func TestFormerTablesAreRemoved(t *testing.T) {
	dir := nginx.Dir(memoryDir(t))
	tb := newTables(dir)
	for _, key := range []string{"one", "two", "three"} {
		for range keptGenerations + 3 {
			if err := tb.write(rendering(key, nginx.Range{Target: "a", Buckets: nginx.Buckets})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tb.keepOnly("two", "three"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"three", "two"}, names(t, filepath.Dir(dir.Tables("any")))); diff != "" {
		t.Errorf("configurations (-want +got):\n%s", diff)
	}
	left := names(t, dir.Tables("three"))
	if len(left) != keptGenerations+1 || !slices.Contains(left, strconv.Itoa(3*(keptGenerations+3))) {
		t.Errorf("the generations %v are left, want the last %d and the link to the last", left, keptGenerations)
	}
	if err := tb.write(rendering("one", nginx.Range{Target: "b", Buckets: nginx.Buckets})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"b": nginx.Buckets}, looked(t, dir, "one", 0)); diff != "" {
		t.Errorf("a configuration that comes back (-want +got):\n%s", diff)
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
