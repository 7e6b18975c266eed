// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/serin-dev/serin/controllers/kit/bounds"
	"github.com/serin-dev/serin/poll/fair"
)

// scrapes are the series that a Prometheus has of some scrapes, in the notation of promtool.
type scrapes map[string][]string

func (s scrapes) add(t *testing.T, g prometheus.Gatherer, nth int) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			b := labels.NewScratchBuilder(3)
			b.Add(model.MetricNameLabel, f.GetName())
			for _, l := range m.GetLabel() {
				b.Add(l.GetName(), l.GetValue())
			}
			b.Sort()
			key := b.Labels().String()
			s[key] = append(append(s[key], slices.Repeat([]string{"_"}, nth-len(s[key]))...), fmt.Sprint(m.GetGauge().GetValue()))
		}
	}
	for key, values := range s {
		if len(values) == nth {
			s[key] = append(values, "stale") // what is not in a scrape any more is stale at once
		}
	}
}

// scrapesOfATarpit are scrapes of a manager, one each minute. The endpoints of the namespace
// tarpit never answer, and those of bank are slow for five minutes.
func scrapesOfATarpit(t *testing.T) scrapes {
	t.Helper()
	all := scrapes{}
	synctest.Test(t, func(t *testing.T) {
		slots := fair.NewSlots(fair.Limits{Slots: 32})
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(bounds.NewSlotUse("metrics", slots))
		never, slow := make(chan struct{}), make(chan struct{})
		for range 40 {
			slots.Go("tarpit", func() { <-never })
			slots.Go("bank", func() { <-slow })
			slots.Go("shop", func() {})
		}
		for minute := range 40 {
			if minute == 5 {
				close(slow)
			}
			synctest.Wait()
			all.add(t, registry, minute)
		}
		close(never)
	})
	return all
}

func TestTheNamespaceThatWaitsForSlotsIsNamedByOneAlert(t *testing.T) {
	t.Parallel()
	all := scrapesOfATarpit(t)
	for _, want := range []string{`serin_slots_busy", work="metrics"`, `namespace="bank", work="metrics"`, `namespace="tarpit", work="metrics"`} {
		if !strings.Contains(fmt.Sprint(all), want) {
			t.Fatalf("no series has %s: %v", want, all)
		}
	}
	// What a manager that runs serves anyway.
	all[`serin_rollouts{state="Stable"}`] = []string{"1x40"}
	type object = map[string]any
	var series, expected []object
	for key, values := range all {
		series = append(series, object{"series": key, "values": strings.Join(values, " ")})
	}
	absolute, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t, read(t, rulesFile)) {
		firing := []object{}
		if a.Alert == "SerinNamespaceWaitsForSlots" {
			firing = []object{{
				"exp_labels": object{"severity": "warning", "namespace": "tarpit", "work": "metrics"},
				"exp_annotations": object{
					"summary":     "Tasks of the namespace tarpit wait for slots: metrics",
					"description": "They waited in more than ten of the last 15 minutes; releases of the namespace are delayed.",
					"runbook_url": a.Annotations["runbook_url"],
				},
			}}
		}
		expected = append(expected, object{"eval_time": "30m", "alertname": a.Alert, "exp_alerts": firing})
	}
	promtoolTest(t, object{
		"rule_files": []string{absolute}, "evaluation_interval": "1m",
		"tests": []object{{"interval": "1m", "input_series": series, "alert_rule_test": expected}},
	})
}

var description = regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// described adds what a collector may serve: the values of constant labels, and others as free.
func described(c prometheus.Collector, all map[string]map[string][]string) {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		c.Describe(ch)
	}()
	for d := range ch {
		m := description.FindStringSubmatch(d.String())
		add(all, m[1], strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' }))
		for _, constant := range regexp.MustCompile(`([a-z_]+)="([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			all[m[1]][constant[1]] = append(all[m[1]][constant[1]], constant[2])
		}
	}
}
