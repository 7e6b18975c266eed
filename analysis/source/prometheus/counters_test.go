// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/analysis/source"
)

// series are the samples of one series: every second one, the last at the given second.
func series(instance, code, le string, last int64, values ...float64) *model.SampleStream {
	s := &model.SampleStream{Metric: model.Metric{"__name__": "x_total", "job": "web", "instance": model.LabelValue(instance)}}
	for name, value := range map[model.LabelName]string{"code": code, "le": le} {
		if value != "" {
			s.Metric[name] = model.LabelValue(value)
		}
	}
	for i, v := range values {
		at := last - int64(len(values)-1-i)
		s.Values = append(s.Values, model.SamplePair{Timestamp: model.TimeFromUnix(at), Value: model.SampleValue(v)})
	}
	return s
}

// reading is one round: the second at which it is read and what is found for the canary.
type reading struct {
	at    int64
	found readings
}

// windows are those that the rounds give.
func windows(t *testing.T, rounds ...reading) (list []analysis.Window) {
	t.Helper()
	m := &Measurer{}
	var w analysis.Windower
	for _, r := range rounds {
		s, err := m.scrape(time.Unix(r.at, 0), readings{}, r.found)
		if err != nil {
			t.Fatalf("at %d: %v", r.at, err)
		}
		var window analysis.Window
		var reason analysis.Reason
		if w, window, reason = w.Add(*s.Counters, analysis.Weight{Percent: 10, Since: time.Unix(1, 0)}); reason == "" {
			list = append(list, window)
		}
	}
	return list
}

func canary(requests, failures int64) analysis.Variant {
	return analysis.Variant{Requests: requests, Failures: failures}
}

func TestWindowsOfRawCounters(t *testing.T) {
	of := func(list ...*model.SampleStream) model.Matrix { return list }
	for name, test := range map[string]struct {
		rounds []reading
		want   []analysis.Variant
	}{
		"the increase between two readings": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 7, 10)), failures: of(series("a", "500", "", 100, 1, 1))}},
				{110, readings{requests: of(series("a", "200", "", 110, 20, 30)), failures: of(series("a", "500", "", 110, 2, 3))}},
			}, []analysis.Variant{canary(20, 2)},
		},
		"the first failure ever is counted": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 7, 10))}},
				{110, readings{requests: of(series("a", "200", "", 110, 20, 30), series("a", "500", "", 110, 4)), failures: of(series("a", "500", "", 110, 4))}},
			}, []analysis.Variant{canary(24, 4)},
		},
		"a restarted pod is left out of one window, the others count": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 90, 100), series("b", "200", "", 100, 90, 100))}},
				{110, readings{requests: of(series("a", "200", "", 110, 4, 5), series("b", "200", "", 110, 120, 130))}},
				{120, readings{requests: of(series("a", "200", "", 120, 10, 15), series("b", "200", "", 120, 150, 150))}},
			}, []analysis.Variant{canary(30, 0), canary(30, 0)},
		},
		"a reset that the sum would hide is seen": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 5), series("a", "404", "", 100, 100))}},
				{110, readings{requests: of(series("a", "200", "", 110, 500), series("a", "404", "", 110, 2))}},
				{120, readings{requests: of(series("a", "200", "", 120, 510), series("a", "404", "", 120, 2))}},
			}, []analysis.Variant{canary(10, 0)},
		},
		"a series that vanished and came back is no increase": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 5), series("a", "404", "", 100, 1000))}},
				{110, readings{requests: of(series("a", "200", "", 110, 6))}},
				{120, readings{requests: of(series("a", "200", "", 120, 7))}},
				{130, readings{requests: of(series("a", "200", "", 130, 8), series("a", "404", "", 130, 1001))}},
				{140, readings{requests: of(series("a", "200", "", 140, 9), series("a", "404", "", 140, 1002))}},
			}, []analysis.Variant{canary(1, 0), canary(2, 0)},
		},
		"a new pod begins with its second reading": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 1))}},
				{110, readings{requests: of(series("a", "200", "", 110, 2), series("b", "200", "", 110, 1000))}},
				{120, readings{requests: of(series("a", "200", "", 120, 4), series("b", "200", "", 120, 1003))}},
			}, []analysis.Variant{canary(1, 0), canary(5, 0)},
		},
		"a pod that ended does not hold the others up": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 1, 1), series("b", "200", "", 100, 5, 5))}},
				{110, readings{requests: of(series("a", "200", "", 110, 2, 2), series("b", "200", "", 101, 5, 5))}},
				{120, readings{requests: of(series("a", "200", "", 120, 4, 4), series("b", "200", "", 101, 5, 5))}},
			}, []analysis.Variant{canary(1, 0), canary(2, 0)},
		},
		"what was scraped between the queries is left for the next window": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 10)), failures: of(series("a", "500", "", 100, 0))}},
				{110, readings{requests: of(series("a", "200", "", 110, 20)), failures: of(series("a", "500", "", 111, 10, 20))}},
				{120, readings{requests: of(series("a", "200", "", 120, 40)), failures: of(series("a", "500", "", 120, 20))}},
			}, []analysis.Variant{canary(10, 10), canary(20, 10)},
		},
		"nothing new closes no window": {
			[]reading{
				{100, readings{requests: of(series("a", "200", "", 100, 10))}},
				{101, readings{requests: of(series("a", "200", "", 100, 10))}},
			}, nil,
		},
		"a histogram counts the requests too": {
			[]reading{
				{100, readings{latency: of(series("a", "", "0.1", 100, 1), series("a", "", "+Inf", 100, 2))}},
				{110, readings{latency: of(series("a", "", "0.1", 110, 4), series("a", "", "+Inf", 110, 7))}},
			}, []analysis.Variant{{Requests: 5, Latency: &analysis.Histogram{LE: []float64{.1}, Counts: []int64{3, 5}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []analysis.Variant
			for _, w := range windows(t, test.rounds...) {
				w.Canary.Spread = analysis.Spread{} // not what this test is about
				got = append(got, w.Canary)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheScrapeIsAsOldAsItsOldestPart(t *testing.T) {
	m := &Measurer{}
	s, err := m.scrape(time.Unix(110, 0),
		readings{requests: model.Matrix{series("a", "", "", 108, 1, 2)}}, readings{requests: model.Matrix{series("b", "", "", 109, 3, 4)}})
	if err != nil || s.At.Unix() != 108 || s.Counters.At.Unix() != 108 {
		t.Errorf("%+v, %v", s, err)
	}
	want := map[string]analysis.PodCounters{
		`stable/"web""a"#0`: {Stable: canary(2, 0)}, `canary/"web""b"#1`: {Canary: canary(4, 0)},
	}
	if diff := cmp.Diff(want, s.Counters.Pods); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoCounterIsNotCounted(t *testing.T) {
	for name, test := range map[string]struct {
		found readings
		want  source.Reason
	}{
		"nothing":                     {readings{}, source.NoData},
		"half a request":              {readings{requests: model.Matrix{series("a", "", "", 1, .5)}}, source.NotANumber},
		"NaN":                         {readings{requests: model.Matrix{series("a", "", "", 1, nan)}}, source.NotANumber},
		"a negative count":            {readings{requests: model.Matrix{series("a", "", "", 1, -1)}}, source.NotANumber},
		"more than can be counted":    {readings{requests: model.Matrix{series("a", "", "", 1, 1e300)}}, source.NotANumber},
		"more failures than requests": {readings{requests: model.Matrix{series("a", "", "", 1, 1)}, failures: model.Matrix{series("a", "", "", 1, 2)}}, source.Malformed},
		"a series without samples":    {readings{requests: model.Matrix{series("a", "", "", 1)}}, source.Malformed},
		"a bucket without a bound":    {readings{latency: model.Matrix{series("a", "", "", 1, 1)}}, source.Malformed},
		"no bucket for the rest":      {readings{latency: model.Matrix{series("a", "", "1", 1, 1)}}, source.Malformed},
		"buckets that descend":        {readings{latency: model.Matrix{series("a", "", "1", 1, 5), series("a", "", "+Inf", 1, 1)}}, source.Malformed},
		"failures of an unknown pod":  {readings{failures: model.Matrix{series("a", "", "", 1, 1)}}, source.NoData},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := (&Measurer{}).scrape(time.Unix(2, 0), readings{}, test.found)
			reason(t, s, err, test.want)
		})
	}
}

func TestTheMemoryOfVanishedSeriesIsBounded(t *testing.T) {
	var l run
	for round := range 4 {
		values := map[model.Fingerprint]float64{}
		for i := range maxGone / 2 {
			values[model.Fingerprint(round*maxGone+i)] = 1
		}
		l.gone = l.missing(values)
		l.values = values
	}
	if n := len(l.gone); n != maxGone {
		t.Errorf("%d are remembered", n)
	}
}

var nan = math.NaN()
