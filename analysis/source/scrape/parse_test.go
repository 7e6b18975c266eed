// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis"
)

var web = analysis.Target{Stable: "web-stable", Canary: "web-canary"}

// fixture is what a proxy answers; the stable backend was not asked yet by anyone
// whose request was split. Other requests and copies are in it too.
func fixture(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func TestParseReadsBothVariants(t *testing.T) {
	got, err := parse([]byte(fixture(t)), web)
	if err != nil {
		t.Fatal(err)
	}
	if got.start != "1784321234.25" {
		t.Errorf("start = %q", got.start)
	}
	want := analysis.PodCounters{Canary: analysis.Variant{
		Requests: 105, Failures: 5,
		Latency: &analysis.Histogram{LE: []float64{.001, .1, 60}, Counts: []int64{1, 90, 104, 105}},
	}}
	if diff := cmp.Diff(want, got.counters); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseReadsWhatTheProxyRefused(t *testing.T) {
	const (
		kind  = "# TYPE serin_proxy_refused_requests_total counter\n"
		none  = kind + "serin_proxy_refused_requests_total 0\n"
		other = `serin_proxy_unmatched_requests_total{backend="web-canary",code="500"} `
	)
	for name, test := range map[string]struct {
		text string
		want analysis.Variant
		err  string
	}{
		"a proxy that does not say it":           {fixture(t), analysis.Variant{}, ""},
		"none, of all that any backend answered": {fixture(t) + none, analysis.Variant{Requests: 1_005_108}, ""},
		"some":                                   {fixture(t) + kind + "serin_proxy_refused_requests_total 40\n", analysis.Variant{Requests: 1_005_148, Failures: 40}, ""},
		"a count that is none":                   {fixture(t) + kind + "serin_proxy_refused_requests_total NaN\n", analysis.Variant{}, "one count was expected"},
		"two counts":                             {fixture(t) + none + "serin_proxy_refused_requests_total{a=\"b\"} 1\n", analysis.Variant{}, "2 series"},
		"a gauge":                                {fixture(t) + strings.Replace(none, "counter", "gauge", 1), analysis.Variant{}, "not a COUNTER"},
		"another count that is none":             {strings.Replace(fixture(t), other+"3", other+"-1", 1) + none, analysis.Variant{}, "unmatched_requests_total: backend"},
		"other counts of another kind":           {strings.Replace(fixture(t), "unmatched_requests_total counter", "unmatched_requests_total gauge", 1) + none, analysis.Variant{}, "not a COUNTER"},
	} {
		got, err := parse([]byte(test.text), web)
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", name, err, test.err)
		}
		if diff := cmp.Diff(test.want, got.counters.All); err == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseRefusesWhatCannotBeTrue(t *testing.T) {
	const (
		ok   = `serin_proxy_requests_total{backend="web-canary",code="200"} 90`
		inf  = `_bucket{backend="web-canary",le="+Inf"} 105`
		info = `serin_proxy_backend_info{backend="web-stable"} 1`
		sum  = `serin_proxy_request_duration_seconds_count{backend="web-canary"} 105`
	)
	for _, tt := range []struct {
		name     string
		old, new string
		want     string // within the error
	}{
		{"a NaN count", ok, strings.Replace(ok, "90", "NaN", 1), `backend "web-canary", code 200: not a count`},
		{"an infinite count", ok, strings.Replace(ok, "90", "+Inf", 1), "not a count"},
		{"a negative count", ok, strings.Replace(ok, "90", "-1", 1), "not a count"},
		{"half a request", ok, strings.Replace(ok, "90", "90.5", 1), "not a count"},
		{"a count beyond what a float holds", ok, strings.Replace(ok, "90", "1e17", 1), "not a count"},
		{"the same series twice", ok, ok + "\n" + ok, `several series for backend "web-canary" and code 200`},
		{"several series for one code", ok, ok + "\n" + strings.Replace(ok, "{", `{method="GET",`, 1), "several series"},
		{"the same code written differently", ok, ok + "\n" + strings.Replace(ok, `"200"`, `"0200"`, 1), "several series"},
		{"a code that is none", ok, strings.Replace(ok, `"200"`, `"2xx"`, 1), "not a status"},
		{"no code", ok, strings.Replace(ok, `,code="200"`, "", 1), "not a status"},
		{"a counter that is a gauge", "requests_total counter", "requests_total gauge", "serin_proxy_requests_total: not a COUNTER"},
		{"a backend that is not served", info, "", `the proxy does not serve backend "web-stable" (yet)`},
		{"a backend that is no longer served", info, strings.Replace(info, "} 1", "} 0", 1), "does not serve"},
		{"a backend served twice", info, info + "\n" + info, "does not serve"},
		{"no start time", "serin_proxy_start_time_seconds 1.78432123425e+09", "", "serin_proxy_start_time_seconds: 0 series instead of one"},
		{"two start times", "serin_proxy_start_time_seconds 1.78432123425e+09", "serin_proxy_start_time_seconds 1\nserin_proxy_start_time_seconds 2", "2 series instead of one"},
		{"a NaN start time", "1.78432123425e+09", "NaN", "not a time"},
		{"an infinite start time", "1.78432123425e+09", "Inf", "not a time"},
		{"a start time of zero", "1.78432123425e+09", "0", "not a time"},
		{"a NaN bucket", inf, strings.Replace(inf, "105", "NaN", 1), "not a count"},
		{"half a request in a bucket", inf, strings.Replace(inf, "105", "0.5", 1), "not a count"},
		{"a total that is not a count", sum, strings.Replace(sum, "105", "105.5", 1), "not a count"},
		{"a total that is not there", sum, "", "a bucket holds more than the total"},
		{"a last bucket that differs from the total", sum, strings.Replace(sum, "105", "106", 1), "the last bucket and the total differ"},
		{"a bucket of more than the total", "} 104", "} 106", "a bucket holds more than the total"},
		{"buckets that are not cumulative", "} 104", "} 80", "latency.counts[2]: 80 is less"},
		{"a bucket twice", `le="60"} 104`, `le="0.1"} 104`, "le[2]"},
		{"several histograms", inf, inf + "\n" + `serin_proxy_request_duration_seconds_bucket{backend="web-canary",method="GET",le="1"} 1`, "several series"},
		{"another language", ok, "<html>", "the answer is not in the Prometheus text format 0.0.4, or was cut short"},
		{"a line that was cut short", "seconds 1.78432123425e+09\n", "seconds 1.784321", "was cut short"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(fixture(t), tt.old, tt.new, 1)
			if text == fixture(t) {
				t.Fatalf("%q is not in the fixture", tt.old)
			}
			_, err := parse([]byte(text), web)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(fixture(f)))
	f.Add([]byte(""))
	f.Add([]byte("serin_proxy_start_time_seconds 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parse(text, web)
		if err != nil {
			return
		}
		for name, variant := range map[string]analysis.Variant{"canary": m.counters.Canary, "stable": m.counters.Stable} {
			if err := variant.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if m.start == "" {
			t.Error("no start")
		}
	})
}
