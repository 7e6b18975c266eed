// SPDX-License-Identifier: Apache-2.0

package datadog

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var now = sourcetest.Now

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
	var called *http.Request
	s, err := conformance.Measure(t, func(w http.ResponseWriter, r *http.Request) {
		called = r
		fmt.Fprint(w, answered(point(time.Minute, "1")+","+point(40*time.Second, "0.5")+","+point(20*time.Second, "null")))
	})
	if err != nil || s.Value != .5 || !s.At.Equal(now.Add(-40*time.Second)) {
		t.Errorf("got %+v, %v", s, err)
	}
	q := called.URL.Query()
	if called.URL.Path != "/api/v1/query" || q.Get("query") != "avg:trace.errors{service:web-canary}" || q.Get("from") != "1784399700" || q.Get("to") != "1784400000" ||
		called.Header.Get("DD-API-KEY") != "a" || called.Header.Get("DD-APPLICATION-KEY") != "b" {
		t.Errorf("called %s %v", called.URL, called.Header)
	}
}

var conformance = sourcetest.Conformance[Query]{
	New: New, Query: query, Secrets: sourcetest.Secrets{"datadog/apiKey": "a", "datadog/appKey": "b"},
	Answers: map[string]sourcetest.Answer{
		"an error":           {Body: `{"status":"error","error":"confidential"}`, Want: source.Rejected},
		"another status":     {Body: `{}`, Want: source.Malformed},
		"no series":          {Body: `{"status":"ok","series":[]}`, Want: source.NoData},
		"two series":         {Body: `{"status":"ok","series":[{"pointlist":[]},{"pointlist":[]}]}`, Want: source.SeveralSeries},
		"only gaps":          {Body: answered(point(0, "null")), Want: source.NoData},
		"an old point":       {Body: answered(point(6*time.Minute, "1")), Want: source.Stale},
		"points that differ": {Body: answered(`["confidential"]`), Want: source.Malformed},
	},
	Mistakes: map[string]func(*Query){
		"address: ":                 func(q *Query) { q.Address = "datadoghq.com" },
		"window: 10s; give 1m to":   func(q *Query) { q.Window = 10 * time.Second },
		"query: there is no":        func(q *Query) { q.Args = nil },
		"query: argument service: ": func(q *Query) { q.Args = map[string]string{"service": "*} or x{"} },
	},
}

func TestConformance(t *testing.T) { conformance.Test(t) }
