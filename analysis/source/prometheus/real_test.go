// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

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

// recording is what a Prometheus has of a stable and a canary target, which it scraped each 15 s.
type recording struct {
	sourcetest.Scrapes
	at time.Time
}

// scrape returns a time soon after a scrape of both.
func (r *recording) scrape(t *testing.T, stable, canary string) (after time.Time) {
	t.Helper()
	r.at = r.at.Add(15 * time.Second)
	r.Add(t, "stable", stable, r.at)
	r.Add(t, "canary", canary, r.at)
	return r.at.Add(time.Second)
}

func variantOf(version string) Scope {
	return Scope{Args: map[string]string{"service": "web-" + version}, Namespace: "shop"}
}

func TestNumbersOfARealPrometheus(t *testing.T) {
	r := &recording{at: time.Now().Add(-time.Hour)}
	stable, canary := counted("stable", 1000, 10), counted("canary", 100, 1)+"odd{namespace=\"shop\"} NaN\nhuge{namespace=\"shop\"} +Inf\n"
	r.scrape(t, stable, canary)
	up := r.scrape(t, stable, canary)
	down := r.scrape(t, stable, "")
	address := sourcetest.PrometheusOf(t, &r.Scrapes)
	const all = `sum(x_total{service="{{args.service}}"})`
	for _, test := range []struct {
		name, query string
		at          time.Time
		want        func(source.Sample, error) bool
	}{
		{"a vector", all, up, value(101)},
		{"a scalar", `2 * 3`, up, value(6)},
		{"NaN", `odd`, up, missing(source.NotANumber)},
		{"an infinity", `huge`, up, missing(source.NotANumber)},
		{"a rate of nothing", `sum(rate(x_total{service="{{args.service}}"}[1m])) / 0`, up, missing(source.NotANumber)},
		{"two series", `x_total`, up, missing(source.SeveralSeries)},
		{"no series", `nothing`, up, missing(source.NoData)},
		{"a query that the server refuses", `sum(x_total) / on () x_total`, up, missing(source.Rejected)},
		{"another namespace", `sum(x_total{namespace="other"})`, up, missing(source.NoData)},
		{"a target that is down is stale at once", all, down, missing(source.NoData)},
		{"what was scraped long ago", `sum(x_total)`, down.Add(6 * time.Minute), missing(source.NoData)},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := New(caller(), token{}, Query{Address: address, PromQL: test.query, Canary: variantOf("canary")})
			if err != nil {
				t.Fatal(err)
			}
			if s, err := m.Measure(t.Context(), test.at); !test.want(s, err) {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

func TestCountersOfARealPrometheus(t *testing.T) {
	r := &recording{at: time.Now().Add(-time.Hour)}
	before, stable := counted("stable", 1000, 10), counted("stable", 1500, 15)
	steps := []struct {
		name  string
		after time.Time
		want  totals
		// targets are those that have counters.
		targets int
	}{
		{"the first scrape", r.scrape(t, before, counted("canary", 100, 1)), totals{}, 2},
		{"the increase of both", r.scrape(t, stable, counted("canary", 150, 11)), totals{canary: 60, stable: 505, failures: 10}, 2},
		{"a new process", r.scrape(t, stable, counted("canary", 5, 0)), totals{canary: 60, stable: 505, failures: 10}, 2},
		{"the increase after a reset", r.scrape(t, stable, counted("canary", 25, 2)), totals{canary: 82, stable: 505, failures: 12}, 2},
		{"a target that missed one scrape", r.scrape(t, stable, ""), totals{canary: 82, stable: 505, failures: 12}, 2},
		{"two scrapes", r.scrape(t, stable, ""), totals{canary: 82, stable: 505, failures: 12}, 1},
	}
	m, err := New(caller(), token{}, Query{
		Address: sourcetest.PrometheusOf(t, &r.Scrapes), Stable: variantOf("stable"), Canary: variantOf("canary"),
		Counters: &Counters{Requests: `x_total{service="{{args.service}}"}`, Failures: `x_total{service="{{args.service}}",code=~"5.."}`},
	})
	if err != nil {
		t.Fatal(err)
	}
	var windower analysis.Windower
	var got totals
	for _, step := range steps {
		s, err := m.Measure(t.Context(), step.after)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var window analysis.Window
		windower, window, _ = windower.Add(*s.Counters, analysis.Weight{Since: time.Unix(1, 0)})
		got = totals{got.canary + window.Canary.Requests, got.stable + window.Stable.Requests, got.failures + window.Canary.Failures}
		if got != step.want || len(s.Counters.Pods) != step.targets {
			t.Errorf("%s: %+v of %d targets, want %+v of %d", step.name, got, len(s.Counters.Pods), step.want, step.targets)
		}
	}
}

// totals are the requests of the windows so far.
type totals struct{ canary, stable, failures int64 }
