// SPDX-License-Identifier: Apache-2.0

package judgement

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/e2e/cluster/rejection"
	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// read is a record of a real run.
func read(t *testing.T, name string) Record {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := json.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func texts(findings []Finding) string {
	var list []string
	for _, f := range findings {
		list = append(list, f.Text)
	}
	return strings.Join(list, "\n")
}

func TestARunWithoutALossPasses(t *testing.T) {
	if findings := Judge(read(t, "clean")); len(findings) > 0 {
		t.Error(texts(findings))
	}
}

// TestEachPlantedLossFailsItsRun judges real runs of TestTrafficSplit with -plant.
func TestEachPlantedLossFailsItsRun(t *testing.T) {
	for plant, want := range map[string]string{
		"dropped":  " timeout",
		"reset":    "requests on the connection that is held: reset",
		"version":  "v1 answered",
		"leftover": "RoleBinding/serin-proxy-leftover is left over",
		"refused":  "connections were refused, and none by the control at the same moment",
	} {
		t.Run(plant, func(t *testing.T) {
			findings := Judge(read(t, plant))
			if !strings.Contains(texts(findings), want) {
				t.Errorf("got %q, want %q in it", texts(findings), want)
			}
			if Inconclusive(findings) {
				t.Error("the loss is taken for the machine's")
			}
		})
	}
}

// lose adds failed requests of one kind to the main load.
func lose(r *Record, kind generator.Kind, seconds ...float64) {
	for _, s := range seconds {
		r.After.Unanswered++
		r.After.Kinds = append(r.After.Kinds, generator.KindReport{Kind: kind, Count: 1})
		r.After.Failures = append(r.After.Failures, generator.Failure{Time: middle(*r), Kind: kind, Seconds: s})
	}
}

// slow adds an answer that took long to the main load.
func slow(r *Record, seconds float64) {
	r.After.Failures = append(r.After.Failures, generator.Failure{Time: middle(*r), Kind: generator.KindSlow, Version: "v1", Seconds: seconds})
}

// control adds failed requests of one kind to the control.
func control(r *Record, kind generator.Kind, after time.Duration) {
	c := &r.After.Control
	c.Failures = append(c.Failures, generator.Failure{Time: middle(*r).Add(after), Kind: kind})
	if kind != generator.KindSlow {
		c.Kinds = append(c.Kinds, generator.KindReport{Kind: kind, Count: 1})
	}
}

// middle is a time between both reports.
func middle(r Record) time.Time { return r.Before.Time.Add(r.After.Time.Sub(r.Before.Time) / 2) }

// TestOneLossIsEnough adds the smallest loss of each kind to a run without any.
func TestOneLossIsEnough(t *testing.T) {
	for name, test := range map[string]struct {
		harm         func(*Record)
		inconclusive bool
	}{
		"a request that is dropped":                  {harm: func(r *Record) { lose(r, generator.KindTimeout, 10) }},
		"a request that is reset":                    {harm: func(r *Record) { lose(r, generator.KindReset, 0.1) }},
		"a request that is closed":                   {harm: func(r *Record) { lose(r, generator.KindClosed, 0.1) }},
		"an answer of a proxy itself":                {harm: func(r *Record) { lose(r, generator.KindNoVersion, 0.1) }},
		"a name that is not found":                   {harm: func(r *Record) { lose(r, generator.KindDNS, 0.1) }},
		"a connection that is refused":               {harm: func(r *Record) { lose(r, generator.KindRefused, 0.1) }},
		"two refused, and one by the control later":  {harm: func(r *Record) { lose(r, generator.KindRefused, 0, 0); control(r, generator.KindRefused, time.Minute) }},
		"one refused, and one by the control later":  {harm: func(r *Record) { lose(r, generator.KindRefused, 0); control(r, generator.KindRefused, time.Minute) }},
		"an answer that takes long":                  {harm: func(r *Record) { slow(r, 3) }},
		"one that takes long with the control":       {harm: func(r *Record) { slow(r, 3); control(r, generator.KindSlow, 0) }, inconclusive: true},
		"one that takes long, and another refused":   {harm: func(r *Record) { slow(r, 3); control(r, generator.KindRefused, 0) }},
		"one reset while the control is slow":        {harm: func(r *Record) { lose(r, generator.KindReset, 0.1); control(r, generator.KindSlow, 0) }},
		"one late, and the control slow a minute on": {harm: func(r *Record) { lose(r, generator.KindTimeout, 10); control(r, generator.KindSlow, time.Minute) }},
		"one late while the control is slow":         {harm: func(r *Record) { lose(r, generator.KindTimeout, 10); control(r, generator.KindSlow, 0) }, inconclusive: true},
		"one reset as the control is":                {harm: func(r *Record) { lose(r, generator.KindReset, 0.1); control(r, generator.KindReset, 0) }, inconclusive: true},
		"two refused while the control refuses one":  {harm: func(r *Record) { lose(r, generator.KindRefused, 0, 0); control(r, generator.KindRefused, 0) }, inconclusive: true},
		"one late with the control, and one reset not": {harm: func(r *Record) {
			lose(r, generator.KindTimeout, 10)
			control(r, generator.KindSlow, 0)
			lose(r, generator.KindReset, 0)
		}},
		"a request that is repeated": {harm: func(r *Record) { r.After.Retried++ }},
		"a probe that is refused": {harm: func(r *Record) {
			r.After.Probes.Kinds = []generator.KindReport{{Kind: generator.KindRefused, Count: 1}}
		}},
		"a long answer that is cut off": {harm: func(r *Record) {
			r.After.Streams.Kinds = []generator.KindReport{{Kind: generator.KindClosed, Count: 1}}
		}},
		"a held connection that is reset":    {harm: func(r *Record) { r.After.Held.Kinds = []generator.KindReport{{Kind: generator.KindReset, Count: 1}} }},
		"a held connection that is replaced": {harm: func(r *Record) { r.After.Held.Connections++ }},
		"an error of a good version":         {harm: func(r *Record) { r.After.Versions[0].Failed++ }},
		"a wrong version for one request":    {harm: func(r *Record) { span(r, "weight 100").Answers["v1"]++ }},
		"an unknown version for one request": {harm: func(r *Record) { span(r, "weight 50").Answers["v9"]++ }},
		"a share that is not the weight":     {harm: func(r *Record) { span(r, "weight 10").Answers["v2"] *= 3 }},
		"a time without an answer":           {harm: func(r *Record) { clear(span(r, "weight 50").Answers) }},
		"an object that is left over":        {harm: func(r *Record) { r.Leftovers = []string{"RoleBinding/serin-proxy-website is left over"} }},
		"a load that restarted":              {harm: func(r *Record) { r.After.StartedAt = r.After.StartedAt.Add(time.Second) }},
		"a request that was not sent":        {harm: func(r *Record) { r.After.Skipped++ }},
		"a control that was never called":    {harm: func(r *Record) { r.After.Control.Requests = r.Before.Control.Requests }},
		"a target that was never probed":     {harm: func(r *Record) { r.After.Probes.Requests = r.Before.Probes.Requests }},
		"a datagram that is lost": {harm: func(r *Record) {
			r.Pings = []Pings{{What: "datagrams", Target: series(generator.KindTimeout), Control: series()}}
		}},
		"a datagram that is refused": {harm: func(r *Record) {
			r.Pings = []Pings{{What: "datagrams", Target: series(generator.KindRefused), Control: series()}}
		}},
		"a wrong answer to a datagram": {harm: func(r *Record) {
			r.Pings = []Pings{{What: "datagrams", Target: series(generator.KindOther), Control: series()}}
		}},
		"no datagram at all": {harm: func(r *Record) { r.Pings = []Pings{{What: "datagrams", Control: series()}} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, "clean")
			r.After.Control.Failures, r.After.ControlProbes.Failures = nil, nil // the machine was busy
			test.harm(&r)
			findings := Judge(r)
			if len(findings) == 0 {
				t.Fatal("it passes")
			}
			if got := Inconclusive(findings); got != test.inconclusive {
				t.Errorf("inconclusive is %t, want %t: %s", got, test.inconclusive, texts(findings))
			}
		})
	}
}

// series is what a client counted, with one failure of each kind.
func series(kinds ...generator.Kind) generator.Series {
	s := generator.Series{Requests: 100}
	for _, kind := range kinds {
		s.Kinds = append(s.Kinds, generator.KindReport{Kind: kind, Count: 1})
		s.Failures = append(s.Failures, generator.Failure{Kind: kind, Time: time.Unix(1, 0)})
	}
	return s
}

func span(r *Record, what string) Span {
	i := slices.IndexFunc(r.Spans, func(s Span) bool { return s.What == what })
	return r.Spans[i]
}

// TestWhatTheControlSuffersTooIsNoLoss is the one thing that Kubernetes itself may break.
func TestWhatTheControlSuffersTooIsNoLoss(t *testing.T) {
	r := read(t, "clean")
	lose(&r, generator.KindRefused, 0)
	control(&r, generator.KindRefused, moment/2)
	control(&r, generator.KindReset, 0)
	slow(&r, 2.9)
	if findings := Judge(r); len(findings) > 0 {
		t.Error(texts(findings))
	}
}

// TestWhatTheNodeLedNowhereIsNoLoss takes one rejection for one refused connection, if it is to
// the same address at the same moment.
func TestWhatTheNodeLedNowhereIsNoLoss(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		after   time.Duration
		refused int
		lost    bool
	}{
		"one that was rejected":          {address: "10.96.8.61:80", refused: 1},
		"one of two that were refused":   {address: "10.96.8.61:80", refused: 2, lost: true},
		"one of another Service":         {address: "10.96.8.6:80", refused: 1, lost: true},
		"one of another port":            {address: "10.96.8.61:8", refused: 1, lost: true},
		"one that was told late":         {address: "10.96.8.61:80", after: toldWithin / 2, refused: 1},
		"one that was rejected before":   {address: "10.96.8.61:80", after: -2 * time.Second, refused: 1, lost: true},
		"one that was rejected later on": {address: "10.96.8.61:80", after: 2 * toldWithin, refused: 1, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, "clean")
			r.After.Control.Failures, r.After.ControlProbes.Failures = nil, nil
			lose(&r, generator.KindRefused, make([]float64, test.refused)...)
			for i := range r.After.Failures {
				r.After.Failures[i].Detail = "dial tcp 10.96.8.61:80: connect: connection refused"
			}
			r.Rejections = []rejection.Rejection{{Time: middle(r).Add(test.after), Address: test.address}}
			if findings := Judge(r); len(findings) > 0 != test.lost {
				t.Errorf("lost is %t, want %t: %s", len(findings) > 0, test.lost, texts(findings))
			}
		})
	}
}

// TestWhatTheNodeLedNowhereIsNoMoreThanTheControlHas: a node also leads nowhere what is sent to a
// port that a Service has lost.
func TestWhatTheNodeLedNowhereIsNoMoreThanTheControlHas(t *testing.T) {
	for _, test := range []struct {
		target, control int
		lost            bool
	}{{3, 0, false}, {40, 0, true}, {40, 30, false}, {40, 5, true}, {0, 40, false}} {
		r := read(t, "clean")
		r.After.Control.Failures, r.After.ControlProbes.Failures = nil, nil
		refuse := func(list *[]generator.Failure, address string, n int) {
			for range n {
				*list = append(*list, generator.Failure{Time: middle(r), Kind: generator.KindRefused, Detail: "dial tcp " + address + ": connect: connection refused"})
				r.Rejections = append(r.Rejections, rejection.Rejection{Time: middle(r), Address: address})
			}
		}
		refuse(&r.After.Failures, "10.96.8.61:80", test.target)
		refuse(&r.After.Control.Failures, "10.96.8.62:80", test.control)
		r.After.Kinds = append(r.After.Kinds, generator.KindReport{Kind: generator.KindRefused, Count: int64(test.target)})
		r.After.Control.Kinds = append(r.After.Control.Kinds, generator.KindReport{Kind: generator.KindRefused, Count: int64(test.control)})
		if findings := Judge(r); len(findings) > 0 != test.lost {
			t.Errorf("%d and %d of the control: lost is %t, want %t: %s", test.target, test.control, len(findings) > 0, test.lost, texts(findings))
		}
	}
}

func TestWhatFailedBeforeIsNotJudged(t *testing.T) {
	r := read(t, "clean")
	for _, report := range []*generator.Report{&r.Before, &r.After} {
		report.Kinds = []generator.KindReport{{Kind: generator.KindReset, Count: 1}}
		report.Failures = append(report.Failures, generator.Failure{Kind: generator.KindReset, Time: r.Before.Time})
		report.Retried++
	}
	if findings := Judge(r); len(findings) > 0 {
		t.Error(texts(findings))
	}
}

func TestTheBadVersionMayFail(t *testing.T) {
	r := read(t, "clean")
	r.After.Versions[0].Failed++
	r.Bad = r.After.Versions[0].Version
	if findings := Judge(r); len(findings) > 0 {
		t.Error(texts(findings))
	}
}

func TestPlausible(t *testing.T) {
	for _, test := range []struct {
		name      string
		part, all int64
		share     float64
		want      bool
	}{
		{"the mean is", 400, 4000, 0.1, true},
		{"4 standard deviations are", 476, 4000, 0.1, true},
		{"5.5 standard deviations above are not", 505, 4000, 0.1, false},
		{"5.5 standard deviations below are not", 295, 4000, 0.1, false},
		{"nothing of a few requests is", 0, 20, 0.1, true},
		{"nothing of many is not", 0, 400, 0.1, false},
		{"nothing at weight 0 is", 0, 4000, 0, true},
		{"one request at weight 0 is not", 1, 4000, 0, false},
		{"one missing request at weight 100 is not", 3999, 4000, 1, false},
		{"all requests at weight 100 are", 4000, 4000, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Plausible(test.part, test.all, test.share); got != test.want {
				t.Errorf("%d of %d at %g: %t, want %t", test.part, test.all, test.share, got, test.want)
			}
		})
	}
}
