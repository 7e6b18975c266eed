// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// slowestShown are the tests that a run names as its slowest.
	slowestShown = 20
	// linesShown are the last lines of a failure that the end of a run repeats: what
	// keeps a part of a log keeps its end.
	linesShown = 40
	// messagesShown are the messages of the test before those lines that are repeated after them: what a
	// test dumps when it has failed follows its messages, and may be long.
	messagesShown = 10
)

// message begins what a test says.
var message = regexp.MustCompile(`^\s*\w+_test\.go:\d+: `)

// Test is a test that ended.
type Test struct {
	Package, Name string
	Took          time.Duration
	// Output is what it printed, of tests that failed or were skipped.
	Output []string
}

func (t Test) String() string { return strings.TrimSpace(t.Package + " " + t.Name) }

// Result is what a stage came to.
type Result struct {
	Stage string
	Took  time.Duration
	// CPU is the processor time of its commands and of the processes that they waited for. Other programs
	// on the machine change it less than Took. Containers are not in it: the node waits for them.
	CPU time.Duration
	// Passed and Cached count tests; those whose result Go had kept have passed, too.
	Passed, Cached  int
	Failed, Skipped []Test
	// Slow are tests with what they took, without their subtests.
	Slow []Test
}

func (r *Result) add(other Result) {
	r.CPU += other.CPU
	r.Passed += other.Passed
	r.Cached += other.Cached
	r.Failed = append(r.Failed, other.Failed...)
	r.Skipped = append(r.Skipped, other.Skipped...)
	r.Slow = append(r.Slow, other.Slow...)
}

// Report writes what a run that took so long came to: times first, then what was skipped and what failed,
// and at the very end a line with the counts. It returns whether the run passed: in
// continuous integration a skipped test fails it.
func Report(out io.Writer, results []Result, took time.Duration, ci bool) (passed bool) {
	var total Result
	for _, r := range results {
		total.add(r)
	}
	writeTimes(out, results, took, total.CPU)
	writeSlowest(out, total.Slow)
	writeTests(out, "Skipped", total.Skipped, 3)
	writeTests(out, "Failed", total.Failed, linesShown)
	if ci && len(total.Skipped) > 0 {
		fmt.Fprintln(out, "\nCI=true: a skipped test fails the run, so that no promise goes untested.")
	}
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", total.Passed, len(total.Failed), len(total.Skipped))
	return len(total.Failed) == 0 && (!ci || len(total.Skipped) == 0)
}

func writeTimes(out io.Writer, results []Result, took, cpu time.Duration) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nstage\ttime\tcpu\tpassed\tcached\tfailed\tskipped\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t\n", r.Stage, minutes(r.Took), minutes(r.CPU), r.Passed, r.Cached, len(r.Failed), len(r.Skipped))
	}
	fmt.Fprintf(table, "all\t%s\t%s\t\t\t\t\t\n", minutes(took), minutes(cpu))
	_ = table.Flush() // as for all that is printed
}

func writeSlowest(out io.Writer, tests []Test) {
	tests = slices.Clone(tests)
	slices.SortStableFunc(tests, func(a, b Test) int { return int(b.Took - a.Took) })
	fmt.Fprintln(out, "\nThe slowest tests")
	for _, t := range tests[:min(slowestShown, len(tests))] {
		fmt.Fprintf(out, "%8.1fs  %s\n", t.Took.Seconds(), t)
	}
}

func writeTests(out io.Writer, title string, tests []Test, most int) {
	if len(tests) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, t := range tests {
		fmt.Fprintf(out, "  %s\n", t)
		for _, line := range lastOf(told(t.Output), most) {
			fmt.Fprintf(out, "      %s\n", strings.TrimRight(line, "\n"))
		}
	}
}

// told are the lines that say something: not those by which go test frames them.
func told(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || strings.HasPrefix(line, "=== ")
	})
}

// timedOut begins what Go prints of a test that hangs: which tests run, and each goroutine after an empty line.
const timedOut = "panic: test timed out"

// lastOf are the last lines, followed by the last messages that came before them; or of a test that hangs the
// goroutines that run code of this repository: a large test has thousands of others.
func lastOf(lines []string, most int) (shown []string) {
	hangs := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, timedOut) })
	if hangs < 0 {
		end := max(0, len(lines)-most)
		messages := slices.DeleteFunc(slices.Clone(lines[:end]), func(line string) bool { return !message.MatchString(line) })
		return slices.Concat(lines[end:], messages[max(0, len(messages)-messagesShown):])
	}
	var goroutine []string
	own := true // the tests that run
	for _, line := range append(slices.Clone(lines[hangs:]), "goroutine ") {
		if strings.HasPrefix(line, "goroutine ") {
			if own {
				shown = append(shown, goroutine...)
			}
			goroutine, own = nil, false
		}
		goroutine = append(goroutine, line)
		own = own || strings.HasPrefix(line, "github.com/serin-dev/serin/")
	}
	return shown
}

// minutes is a time as minutes and seconds.
func minutes(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}
