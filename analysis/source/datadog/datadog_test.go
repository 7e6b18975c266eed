// SPDX-License-Identifier: Apache-2.0

package datadog

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var (
	now     = sourcetest.Now
	secrets = sourcetest.Secrets{"datadog/apiKey": "a", "datadog/appKey": "b"}
)

func query(address string) Query {
	return Query{
		Address: address, Query: `avg:trace.errors{service:{{args.service}}}`, Args: map[string]string{"service": "web-canary"}, Window: 5 * time.Minute,
		APIKey: source.SecretKey{Name: "datadog", Key: "apiKey"}, AppKey: source.SecretKey{Name: "datadog", Key: "appKey"},
	}
}

// answered has the shape of the example in Datadog's documentation, with points so many
// seconds old.
func answered(points string) string {
	return `{"status":"ok","res_type":"time_series","series":[{"end":1,"metric":"trace.errors","interval":20,"start":1,"length":3,"aggr":"avg",
		"scope":"service:web","pointlist":[` + points + `],"expression":"x","unit":null,"display_name":"trace.errors"}],"from_date":1,"to_date":1,"query":"confidential"}`
}

func point(age time.Duration, value string) string {
	return fmt.Sprintf("[%d.0,%s]", now.Add(-age).UnixMilli(), value)
}

func TestTheNewestPoint(t *testing.T) {
	var asked *http.Request
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		fmt.Fprint(w, answered(point(time.Minute, "1")+","+point(40*time.Second, "0.5")+","+point(20*time.Second, "null")))
	})
	m, err := New(sourcetest.Caller(time.Second), secrets, query(address))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	if err != nil || s.Value != .5 || !s.At.Equal(now.Add(-40*time.Second)) {
		t.Errorf("got %+v, %v", s, err)
	}
	q := asked.URL.Query()
	if asked.URL.Path != "/api/v1/query" || q.Get("query") != "avg:trace.errors{service:web-canary}" || q.Get("from") != "1784399700" || q.Get("to") != "1784400000" ||
		asked.Header.Get("DD-API-KEY") != "a" || asked.Header.Get("DD-APPLICATION-KEY") != "b" {
		t.Errorf("asked %s %v", asked.URL, asked.Header)
	}
}

func TestAnswersWithoutANumber(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want source.Reason
	}{
		"an error":           {`{"status":"error","error":"confidential"}`, source.Rejected},
		"another status":     {`{}`, source.Malformed},
		"no series":          {`{"status":"ok","series":[]}`, source.NoData},
		"two series":         {`{"status":"ok","series":[{"pointlist":[]},{"pointlist":[]}]}`, source.SeveralSeries},
		"only gaps":          {answered(point(0, "null")), source.NoData},
		"an old point":       {answered(point(6*time.Minute, "1")), source.Stale},
		"points that differ": {answered(`["confidential"]`), source.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(sourcetest.Caller(time.Second), secrets, query(sourcetest.Serve(t, sourcetest.Says(200, test.body))))
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.Measure(t.Context(), now)
			sourcetest.WantMissing(t, s, err, test.want)
		})
	}
}

func TestAServerThatFails(t *testing.T) {
	sourcetest.Failures(t, func(t *testing.T, caller *fetch.Caller, address string) source.Measurer {
		t.Helper()
		m, err := New(caller, secrets, query(address))
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}

func TestWithoutACredentialNothingIsAsked(t *testing.T) {
	for _, lacking := range []sourcetest.Secrets{{}, {"datadog/apiKey": "a"}} {
		m, err := New(sourcetest.Caller(time.Second), lacking, query(sourcetest.Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") })))
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Measure(t.Context(), now)
		sourcetest.WantMissing(t, s, err, source.Credentials)
	}
}

func TestMistakesNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Query){
		"address: ":                 func(q *Query) { q.Address = "datadoghq.com" },
		"window: 10s; give 1m to":   func(q *Query) { q.Window = 10 * time.Second },
		"query: there is no":        func(q *Query) { q.Args = nil },
		"query: argument service: ": func(q *Query) { q.Args = map[string]string{"service": "*} or x{"} },
	} {
		q := query("https://api.datadoghq.com")
		change(&q)
		if _, err := New(sourcetest.Caller(time.Second), secrets, q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
