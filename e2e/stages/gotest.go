// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// quiet is how long nothing may be printed before a line says what runs.
const quiet = 30 * time.Second

// watcher prints what a person wants to see of go test -json while it runs: a line for
// each package, failures at once, and what runs when nothing was said for a while.
type watcher struct {
	out     io.Writer
	verbose bool

	mu      sync.Mutex
	running map[string]bool
	ended   int
	printed bool
	// stderr is what go test itself says, which of a build that fails is all.
	stderr []string
}

// Event implements testjson.EventHandler.
func (w *watcher) Event(event testjson.TestEvent, execution *testjson.Execution) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	test := testjson.TestName(event.Test)
	switch {
	case event.PackageEvent():
		w.packageEvent(event)
	case event.Action == testjson.ActionOutput:
		if w.verbose && !strings.HasPrefix(event.Output, "=== ") {
			w.print(event.Output)
		}
	case event.Action == testjson.ActionRun && !test.IsSubTest():
		w.running[event.Test] = true
	case event.Action.IsTerminal():
		w.ended++
		delete(w.running, event.Test)
		if event.Action == testjson.ActionFail && !w.verbose {
			tests := execution.Package(event.Package)
			w.print(strings.Join(tests.OutputLines(tests.LastFailedByName(event.Test)), ""))
		}
	}
	return nil
}

// packageEvent prints the line with which go test ends a package.
func (w *watcher) packageEvent(event testjson.TestEvent) {
	result, isResult := strings.CutPrefix(event.Output, "ok  \t")
	switch {
	case event.Action == testjson.ActionOutput && isResult:
		w.print("ok    " + result)
	case event.Action == testjson.ActionFail:
		w.print(fmt.Sprintf("FAIL  %s\t%.3fs\n", event.Package, event.Elapsed))
	}
}

// Err implements testjson.EventHandler.
func (w *watcher) Err(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stderr = append(w.stderr, text)
	w.print(text + "\n")
	return nil
}

func (w *watcher) print(text string) {
	w.printed = true
	fmt.Fprint(w.out, text)
}

// heartbeat says what runs if nothing was printed since it was called last.
func (w *watcher) heartbeat() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.printed {
		what := "compiling"
		if names := slices.Sorted(maps.Keys(w.running)); len(names) > 0 {
			what = strings.Join(names[:min(len(names), 4)], ", ")
		}
		fmt.Fprintf(w.out, "… %d tests ended; now: %s\n", w.ended, what)
	}
	w.printed = false
}

// count makes a result of what go test did. err is how its command ended.
func count(execution *testjson.Execution, stderr []string, err error) (r Result) {
	for _, name := range execution.Packages() {
		tests := execution.Package(name)
		r.Passed += len(tests.Passed)
		if strings.Contains(strings.Join(tests.OutputLines(testjson.TestCase{}), ""), "\t(cached)") {
			r.Cached += len(tests.Passed)
		}
		for _, tc := range tests.TestCases() {
			if !tc.Test.IsSubTest() {
				r.Slow = append(r.Slow, Test{Package: short(name), Name: tc.Test.Name(), Took: tc.Elapsed})
			}
		}
	}
	for _, tc := range testjson.FilterFailedUnique(execution.Failed()) {
		r.Failed = append(r.Failed, Test{Package: short(tc.Package), Name: tc.Test.Name(), Output: execution.OutputLines(tc)})
	}
	for _, tc := range execution.Skipped() {
		r.Skipped = append(r.Skipped, Test{Package: short(tc.Package), Name: tc.Test.Name(), Output: execution.OutputLines(tc)})
	}
	if len(execution.Errors()) > 0 || err != nil && len(r.Failed) == 0 {
		output := append(slices.Clone(stderr), execution.Errors()...)
		if err != nil {
			output = append(output, err.Error())
		}
		r.Failed = append(r.Failed, Test{Name: "go test", Output: output})
	}
	return r
}

// short leaves the name of the repository out.
func short(name string) string {
	if below, inside := strings.CutPrefix(name, "github.com/serin-dev/serin"); inside {
		return "." + below
	}
	return name
}
