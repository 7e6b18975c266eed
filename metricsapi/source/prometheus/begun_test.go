// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

// target is scraped. What it exposes is text, and it answers with an error without any.
type target struct{ text atomic.Pointer[string] }

func (x *target) expose(lines ...string) {
	text := strings.Join(lines, "\n") + "\n"
	x.text.Store(&text)
}

func (x *target) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text := x.text.Load()
	if text == nil || *text == "\n" {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprint(w, *text)
}

// runTargets scrapes targets, each as an instance of its name.
func runTargets(t *testing.T, names []string) (map[string]*target, string) {
	t.Helper()
	targets := map[string]*target{}
	var config strings.Builder
	config.WriteString("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n- job_name: mesh\n  static_configs:\n")
	for _, name := range names {
		targets[name] = &target{}
		server := httptest.NewServer(targets[name])
		t.Cleanup(server.Close)
		fmt.Fprintf(&config, "  - {targets: ['%s'], labels: {instance: %s}}\n", server.Listener.Addr(), name)
	}
	config.WriteString("  metric_relabel_configs: [{source_labels: [instance], regex: nameless, target_label: instance, replacement: ''}]\n")
	return targets, sourcetest.Prometheus(t, config.String())
}

func TestWhatIsNewAtATargetCountsInFullAndWhatIsNewToTheStoreDoesNot(t *testing.T) {
	const window = 4 * time.Second
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
		{name: "a target without a name tells nothing of what is new", instance: "nameless", before: []string{ok(100)}, after: []string{ok(100), failed(50)}},
		{name: "a series that ended does not count", instance: "ended", before: []string{ok(100), failed(50)}, after: []string{ok(100)}},
	}
	var names []string
	for _, test := range tests {
		names = append(names, test.instance)
	}
	targets, address := runTargets(t, names)
	for _, test := range tests {
		targets[test.instance].expose(test.before...)
	}
	s, _ := realSource(t, address, window)
	awaitSeries(t, s, `count(count by (instance) (x_total))`, model.SampleValue(len(tests)-1))
	time.Sleep(window / 2) // so that they are there at the beginning of the window
	changed := time.Now()
	for _, test := range tests {
		targets[test.instance].expose(test.after...)
	}
	awaitSeries(t, s, `sum(x_total{instance="started"})`, 1500)
	awaitSeries(t, s, `count(x_total{zone="a"})`, 2)
	at := changed.Add(window - time.Second)
	time.Sleep(time.Until(at))
	text, err := (&View{Server: Party{Namespace: Name{Label: instanceLabel}}}).render(Series{Metric: "x_total"}, "", window, "code")
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := s.ask(t.Context(), text, at)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, sample := range answer {
		got[string(sample.Metric[instanceLabel])+" "+string(sample.Metric["code"])] = float64(sample.Value)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			instance := strings.TrimPrefix(test.instance, "nameless")
			okCount, failures := got[instance+" 200"], got[instance+" 500"]
			if okCount != test.ok && (!test.estimated || okCount < test.ok || okCount > 2*test.ok) {
				t.Errorf("%v successes, want %v", okCount, test.ok)
			}
			if failures != test.failed {
				t.Errorf("%v failures, want %v", failures, test.failed)
			}
		})
	}
}

// awaitSeries waits until a query has a value.
func awaitSeries(t *testing.T, s *Source, text string, want model.SampleValue) {
	t.Helper()
	var last model.Vector
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(50 * time.Millisecond) {
		answer, _, err := s.ask(t.Context(), text, time.Now())
		if err == nil && len(answer) == 1 && answer[0].Value == want {
			return
		}
		last = answer
		if time.Now().After(deadline) {
			t.Fatalf("%s is %v, %v, want %v", text, last, err, want)
		}
	}
}
