// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

func TestWhatIsNewAtATargetCountsInFullAndWhatIsNewToTheStoreDoesNot(t *testing.T) {
	const window = time.Minute
	ok, failed := func(n int) string { return fmt.Sprintf(`x_total{code="200"} %d`, n) }, func(n int) string { return fmt.Sprintf(`x_total{code="500"} %d`, n) }
	tests := []struct {
		name, instance string
		before, after  []string
		// ok and failed are the counts of the window. An estimate of ok is not less,
		// and not twice as much.
		ok, failed float64
		estimated  bool
	}{
		{name: "the first failures count", instance: "first", before: []string{ok(100)}, after: []string{ok(110), failed(7)}, ok: 10, failed: 7},
		{name: "a series that goes on counts what it grew by", instance: "on", before: []string{ok(100), failed(3)}, after: []string{ok(110), failed(5)}, ok: 10, failed: 2},
		{name: "a counter that was reset is estimated, and what begins then counts", instance: "reset", before: []string{ok(100)}, after: []string{ok(4), failed(2)}, ok: 4, estimated: true, failed: 2},
		{name: "what a new target had counted before does not count", instance: "started", before: nil, after: []string{ok(1000), failed(500)}},
		{name: "what a target is called anew does not count", instance: "renamed", before: []string{ok(100), failed(50)}, after: []string{`x_total{code="200",zone="a"} 100`, `x_total{code="500",zone="a"} 50`}},
		{name: "a target without a name tells nothing of what is new", instance: "", before: []string{ok(100)}, after: []string{ok(100), failed(50)}},
		{name: "a series that ended does not count", instance: "ended", before: []string{ok(100), failed(50)}, after: []string{ok(100)}},
	}
	scrapes, end := &sourcetest.Scrapes{}, time.Now().Add(-time.Hour).Truncate(time.Second)
	for at := end.Add(-2 * window); !at.After(end); at = at.Add(window / 4) {
		for _, test := range tests {
			lines := test.before
			if at.After(end.Add(-window / 2)) {
				lines = test.after
			}
			scrapes.Add(t, test.instance, strings.Join(append(lines, ""), "\n"), at)
		}
	}
	s, _ := realSource(t, sourcetest.PrometheusOf(t, scrapes), window)
	text, err := (&View{Server: Party{Namespace: Name{Label: instanceLabel}}}).render(Series{Metric: "x_total"}, "", window, "code")
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := s.ask(t.Context(), text, end)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, sample := range answer {
		got[string(sample.Metric[instanceLabel])+" "+string(sample.Metric["code"])] = float64(sample.Value)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			okCount, failures := got[test.instance+" 200"], got[test.instance+" 500"]
			if okCount != test.ok && (!test.estimated || okCount < test.ok || okCount > 2*test.ok) {
				t.Errorf("%v successes, want %v", okCount, test.ok)
			}
			if failures != test.failed {
				t.Errorf("%v failures, want %v", failures, test.failed)
			}
		})
	}
}
