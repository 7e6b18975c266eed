// SPDX-License-Identifier: Apache-2.0

package graphite

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
	secrets = sourcetest.Secrets{"graphite/username": "jane", "graphite/password": "secret"}
)

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
	var asked *http.Request
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		fmt.Fprint(w, answered(point("1", time.Minute)+","+point("2.5", 30*time.Second)+","+point("null", 0)))
	})
	m, err := New(sourcetest.Caller(time.Second), secrets, query(address))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	if err != nil || s.Value != 2.5 || !s.At.Equal(now.Add(-30*time.Second)) {
		t.Errorf("got %+v, %v", s, err)
	}
	user, password, _ := asked.BasicAuth()
	q := asked.URL.Query()
	if asked.URL.Path != "/render" || q.Get("target") != "sumSeries(stats.web-canary.errors)" || q.Get("format") != "json" || q.Get("from") != "1784399700" || user != "jane" || password != "secret" {
		t.Errorf("asked %s as %s", asked.URL, user)
	}
}

func TestAnswersWithoutANumber(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want source.Reason
	}{
		"no series":          {`[]`, source.NoData},
		"two series":         {`[{"datapoints":[]},{"datapoints":[]}]`, source.SeveralSeries},
		"only gaps":          {answered(point("null", 0)), source.NoData},
		"an old point":       {answered(point("1", 6*time.Minute)), source.Stale},
		"points that differ": {answered(`["confidential",1]`), source.Malformed},
		"NaN":                {answered(point("NaN", 0)), source.Malformed},
		"another object":     {`{"error":"confidential"}`, source.Malformed},
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
	for _, lacking := range []sourcetest.Secrets{{}, {"graphite/username": "jane"}} {
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
		"address: ":                  func(q *Query) { q.Address = "graphite" },
		"window: 10s; give 1m to":    func(q *Query) { q.Window = 10 * time.Second },
		"target: there is no":        func(q *Query) { q.Args = nil },
		"target: argument service: ": func(q *Query) { q.Args = map[string]string{"service": "*"} },
	} {
		q := query("http://graphite.example")
		change(&q)
		if _, err := New(sourcetest.Caller(time.Second), secrets, q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
