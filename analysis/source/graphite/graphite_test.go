// SPDX-License-Identifier: Apache-2.0

package graphite

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
		Address: address + "/", Target: `sumSeries(stats.{{args.service}}.errors)`, Args: map[string]string{"service": "web-canary"}, Window: 5 * time.Minute,
		Username: source.SecretKey{Name: "graphite", Key: "username"}, Password: source.SecretKey{Name: "graphite", Key: "password"},
	}
}

func answered(points string) string {
	return `[{"target":"confidential","tags":{"name":"x"},"datapoints":[` + points + `]}]`
}

func point(value string, age time.Duration) string {
	return fmt.Sprintf("[%s,%d]", value, now.Add(-age).Unix())
}

func TestTheNewestPoint(t *testing.T) {
	var called *http.Request
	s, err := conformance.Measure(t, func(w http.ResponseWriter, r *http.Request) {
		called = r
		fmt.Fprint(w, answered(point("1", time.Minute)+","+point("2.5", 30*time.Second)+","+point("null", 0)))
	})
	if err != nil || s.Value != 2.5 || !s.At.Equal(now.Add(-30*time.Second)) {
		t.Errorf("got %+v, %v", s, err)
	}
	user, password, _ := called.BasicAuth()
	q := called.URL.Query()
	if called.URL.Path != "/render" || q.Get("target") != "sumSeries(stats.web-canary.errors)" || q.Get("format") != "json" || q.Get("from") != "1784399700" || user != "jane" || password != "secret" {
		t.Errorf("called %s as %s", called.URL, user)
	}
}

var conformance = sourcetest.Conformance[Query]{
	New: New, Query: query, Secrets: sourcetest.Secrets{"graphite/username": "jane", "graphite/password": "secret"},
	Answers: map[string]sourcetest.Answer{
		"no series":          {Body: `[]`, Want: source.NoData},
		"two series":         {Body: `[{"datapoints":[]},{"datapoints":[]}]`, Want: source.SeveralSeries},
		"only gaps":          {Body: answered(point("null", 0)), Want: source.NoData},
		"an old point":       {Body: answered(point("1", 6*time.Minute)), Want: source.Stale},
		"points that differ": {Body: answered(`["confidential",1]`), Want: source.Malformed},
		"NaN":                {Body: answered(point("NaN", 0)), Want: source.Malformed},
		"another object":     {Body: `{"error":"confidential"}`, Want: source.Malformed},
	},
	Mistakes: map[string]func(*Query){
		"address: ":                  func(q *Query) { q.Address = "graphite" },
		"window: 10s; give 1m to":    func(q *Query) { q.Window = 10 * time.Second },
		"target: there is no":        func(q *Query) { q.Args = nil },
		"target: argument service: ": func(q *Query) { q.Args = map[string]string{"service": "*"} },
	},
}

func TestConformance(t *testing.T) { conformance.Test(t) }
