// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

// timeout is how long a test waits for what must happen.
const timeout = 30 * time.Second

// exporter serves metrics that the test writes.
type exporter struct {
	*httptest.Server
	mu   sync.Mutex
	text string
	down bool
}

func export(t *testing.T) *exporter {
	t.Helper()
	e := &exporter{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.down {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, e.text)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *exporter) set(text string, down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text, e.down = text, down
}

// realServer runs a Prometheus that scrapes the exporters five times a second.
func realServer(t *testing.T, exporters ...*exporter) (address string) {
	t.Helper()
	targets := make([]string, 0, len(exporters))
	for _, e := range exporters {
		targets = append(targets, "'"+e.Listener.Addr().String()+"'")
	}
	text := "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n- job_name: web\n  static_configs: [{targets: [" + strings.Join(targets, ", ") + "]}]\n"
	return sourcetest.Prometheus(t, text)
}

// until asks until the answer is as wanted.
func until(t *testing.T, what string, m *Measurer, holds func(source.Sample, error) bool) source.Sample {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		s, err := m.Measure(t.Context(), time.Now())
		if holds(s, err) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen; the last answer is %+v, %v", what, s, err)
		}
	}
}

func missing(want source.Reason) func(source.Sample, error) bool {
	return func(_ source.Sample, err error) bool {
		var m *source.MissingError
		return errors.As(err, &m) && m.Reason == want
	}
}

func value(want float64) func(source.Sample, error) bool {
	return func(s source.Sample, err error) bool { return err == nil && s.Value == want }
}

// counted is what the exporter of one version says.
func counted(version string, ok, failed int) string {
	return fmt.Sprintf("x_total{namespace=\"shop\",service=\"web-%[1]s\",code=\"200\"} %[2]d\nx_total{namespace=\"shop\",service=\"web-%[1]s\",code=\"500\"} %[3]d\n"+
		"x_total{namespace=\"other\",service=\"web-%[1]s\",code=\"200\"} 1000000\n", version, ok, failed)
}

func TestARealPrometheus(t *testing.T) {
	stable, canary := export(t), export(t)
	stable.set(counted("stable", 1000, 10), false)
	canary.set(counted("canary", 100, 1)+"odd{namespace=\"shop\"} NaN\nhuge{namespace=\"shop\"} +Inf\n", false)
	address := realServer(t, stable, canary)
	variant := func(version string) Scope {
		return Scope{Args: map[string]string{"service": "web-" + version}, Namespace: "shop"}
	}
	plain := func(query string) *Measurer {
		m, err := New(caller(), token{}, Query{Address: address, PromQL: query, MaxAge: 3 * time.Second, Canary: variant("canary")})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	until(t, "the first scrape", plain(`sum(x_total{service="{{args.service}}"})`), value(101))
	until(t, "a scalar", plain(`2 * 3`), value(6))
	until(t, "NaN", plain(`odd`), missing(source.NotANumber))
	until(t, "an infinity", plain(`huge`), missing(source.NotANumber))
	until(t, "a rate of nothing", plain(`sum(rate(x_total{service="{{args.service}}"}[3s])) / 0`), missing(source.NotANumber))
	until(t, "two series", plain(`x_total`), missing(source.SeveralSeries))
	until(t, "no series", plain(`nothing`), missing(source.NoData))
	until(t, "a query that the server refuses", plain(`sum(x_total) / on () x_total`), missing(source.Rejected))
	until(t, "another namespace", plain(`sum(x_total{namespace="other"})`), missing(source.NoData))

	later := plain(`sum(x_total{service="{{args.service}}"})`)
	if s, err := later.Measure(t.Context(), time.Now().Add(6*time.Minute)); !missing(source.NoData)(s, err) {
		t.Errorf("what was scraped long ago gives %+v, %v", s, err)
	}

	compared, err := New(caller(), token{}, Query{
		Address: address, MaxAge: 3 * time.Second, Stable: variant("stable"), Canary: variant("canary"),
		Counters: &Counters{Requests: `x_total{service="{{args.service}}"}`, Failures: `x_total{service="{{args.service}}",code=~"5.."}`},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &totals{}
	first := until(t, "counters of both versions", compared, w.reach(t, 0, 0))
	if n := len(first.Counters.Pods); n != 2 {
		t.Errorf("%d pods: %+v", n, first.Counters)
	}
	stable.set(counted("stable", 1500, 15), false)
	canary.set(counted("canary", 150, 11), false)
	until(t, "the increase of both", compared, w.reach(t, 60, 505))
	canary.set(counted("canary", 5, 0), false) // a new process
	until(t, "the series of the new process", plain(`sum(x_total{service="{{args.service}}"})`), value(5))
	until(t, "a reading of the new process", compared, w.reach(t, 60, 505))
	canary.set(counted("canary", 25, 2), false)
	until(t, "the increase after a reset", compared, w.reach(t, 82, 505))
	if w.failures != 10+2 {
		t.Errorf("%d failures", w.failures)
	}

	canary.set("", true)
	until(t, "a target that is down is stale at once", plain(`sum(x_total{service="{{args.service}}"})`), missing(source.NoData))
	until(t, "its counters are gone", compared, func(s source.Sample, err error) bool {
		w.reach(t, 0, 0)(s, err)
		return err == nil && len(s.Counters.Pods) == 1
	})
	if w.canary != 82 || w.stable != 505 {
		t.Errorf("counted %+v", w)
	}
}

// totals adds up the windows of successive scrapes.
type totals struct {
	windower                 analysis.Windower
	canary, stable, failures int64
}

// reach takes a measurement in and reports whether the requests add up to the numbers.
func (w *totals) reach(t *testing.T, canary, stable int64) func(source.Sample, error) bool {
	t.Helper()
	return func(s source.Sample, err error) bool {
		if err != nil {
			return false
		}
		var window analysis.Window
		w.windower, window, _ = w.windower.Add(*s.Counters, analysis.Weight{Since: time.Unix(1, 0)})
		w.canary += window.Canary.Requests
		w.stable += window.Stable.Requests
		w.failures += window.Canary.Failures
		if w.canary > 82 || w.stable > 505 {
			t.Fatalf("counted too much: %+v", w)
		}
		return w.canary == canary && w.stable == stable && len(s.Counters.Pods) == 2
	}
}
