// SPDX-License-Identifier: Apache-2.0

package influxdb

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var now = sourcetest.Now

func query(address string) Query {
	return Query{
		Address: address, Organization: "the shop", Flux: `from(bucket: "web") |> range(start: -5m) |> filter(fn: (r) => r.service == "{{args.service}}")`,
		Args: map[string]string{"service": "web-canary"}, MaxAge: 5 * time.Minute, Token: source.SecretKey{Name: "influx", Key: "token"},
	}
}

const head = ",result,table,_start,_stop,_time,_value,_field\r\n"

func row(table int, age time.Duration, value string) string {
	return fmt.Sprintf(",,%d,2026-01-01T00:00:00Z,2026-01-01T00:05:00Z,%s,%s,errors\r\n", table, now.Add(-age).Format(time.RFC3339Nano), value)
}

func TestTheNewestRow(t *testing.T) {
	var called *http.Request
	var body struct{ Query, Type string }
	s, err := conformance.Measure(t, func(w http.ResponseWriter, r *http.Request) {
		called = r
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, head+row(0, time.Minute, "1")+row(0, 10*time.Second, "0.25")+row(0, 0, ""))
	})
	if err != nil || s.Value != .25 || !s.At.Equal(now.Add(-10*time.Second)) {
		t.Errorf("got %+v, %v", s, err)
	}
	if called.URL.Path != "/api/v2/query" || called.URL.Query().Get("org") != "the shop" || called.Header.Get("Authorization") != "Token t0ken" ||
		body.Type != "flux" || !strings.Contains(body.Query, `r.service == "web-canary"`) {
		t.Errorf("called %s %v %+v", called.URL, called.Header, body)
	}
}

func FuzzNoAnswerPanics(f *testing.F) {
	for _, seed := range []string{"", head, head + row(0, 0, "1"), "_value,_time\n1\n", "_time,_value,table\n2026-01-01T00:00:00Z,1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		tables, err := parse([]byte(answer))
		if err != nil && tables != nil {
			t.Errorf("%v with %v", tables, err)
		}
	})
}

var conformance = sourcetest.Conformance[Query]{
	New: New, Query: query, Secrets: sourcetest.Secrets{"influx/token": "t0ken"},
	Answers: map[string]sourcetest.Answer{
		"nothing":              {Body: "", Want: source.NoData},
		"an empty line":        {Body: "\r\n", Want: source.NoData},
		"a header alone":       {Body: head, Want: source.NoData},
		"two tables":           {Body: head + row(0, 0, "1") + row(1, 0, "1"), Want: source.SeveralSeries},
		"two headers":          {Body: head + row(0, 0, "1") + head + row(0, 0, "1"), Want: source.SeveralSeries},
		"an old row":           {Body: head + row(0, time.Hour, "1"), Want: source.Stale},
		"only gaps":            {Body: head + row(0, 0, ""), Want: source.NoData},
		"a text":               {Body: head + row(0, 0, "confidential"), Want: source.NotANumber},
		"NaN":                  {Body: head + row(0, 0, "NaN"), Want: source.NotANumber},
		"an infinity":          {Body: head + row(0, 0, "+Inf"), Want: source.NotANumber},
		"other columns":        {Body: ",result,table,x\r\n,,0,confidential\r\n", Want: source.Malformed},
		"half a row":           {Body: head + ",,0\r\n", Want: source.Malformed},
		"a time that is none":  {Body: head + ",,0,,,confidential,1,errors\r\n", Want: source.Malformed},
		"quotes that are open": {Body: head + `,,0,"`, Want: source.Malformed},
		"an error in CSV":      {Body: "error,reference\r\nconfidential,897\r\n", Want: source.Malformed},
	},
	Mistakes: map[string]func(*Query){
		"address: ":                 func(q *Query) { q.Address = "influx" },
		"organization: missing":     func(q *Query) { q.Organization = "" },
		"maxAge: 10s; give 1m to":   func(q *Query) { q.MaxAge = 10 * time.Second },
		"query: there is no":        func(q *Query) { q.Args = nil },
		"query: argument service: ": func(q *Query) { q.Args = map[string]string{"service": `" or true`} },
	},
}

func TestConformance(t *testing.T) { conformance.Test(t) }
