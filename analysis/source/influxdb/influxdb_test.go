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
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var (
	now     = sourcetest.Now
	secrets = sourcetest.Secrets{"influx/token": "t0ken"}
)

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
	var asked *http.Request
	var body struct{ Query, Type string }
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, head+row(0, time.Minute, "1")+row(0, 10*time.Second, "0.25")+row(0, 0, ""))
	})
	m, err := New(sourcetest.Caller(time.Second), secrets, query(address))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	if err != nil || s.Value != .25 || !s.At.Equal(now.Add(-10*time.Second)) {
		t.Errorf("got %+v, %v", s, err)
	}
	if asked.URL.Path != "/api/v2/query" || asked.URL.Query().Get("org") != "the shop" || asked.Header.Get("Authorization") != "Token t0ken" ||
		body.Type != "flux" || !strings.Contains(body.Query, `r.service == "web-canary"`) {
		t.Errorf("asked %s %v %+v", asked.URL, asked.Header, body)
	}
}

func TestAnswersWithoutANumber(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want source.Reason
	}{
		"nothing":              {"", source.NoData},
		"an empty line":        {"\r\n", source.NoData},
		"a header alone":       {head, source.NoData},
		"two tables":           {head + row(0, 0, "1") + row(1, 0, "1"), source.SeveralSeries},
		"two headers":          {head + row(0, 0, "1") + head + row(0, 0, "1"), source.SeveralSeries},
		"an old row":           {head + row(0, time.Hour, "1"), source.Stale},
		"only gaps":            {head + row(0, 0, ""), source.NoData},
		"a text":               {head + row(0, 0, "confidential"), source.NotANumber},
		"NaN":                  {head + row(0, 0, "NaN"), source.NotANumber},
		"an infinity":          {head + row(0, 0, "+Inf"), source.NotANumber},
		"other columns":        {",result,table,x\r\n,,0,confidential\r\n", source.Malformed},
		"half a row":           {head + ",,0\r\n", source.Malformed},
		"a time that is none":  {head + ",,0,,,confidential,1,errors\r\n", source.Malformed},
		"quotes that are open": {head + `,,0,"`, source.Malformed},
		"an error in CSV":      {"error,reference\r\nconfidential,897\r\n", source.Malformed},
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

func FuzzNoAnswerPanics(f *testing.F) {
	for _, seed := range []string{"", head, head + row(0, 0, "1"), "_value,_time\n1\n", "_time,_value,table\n2026-01-01T00:00:00Z,1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		tables, err := parse([]byte(answer))
		if err != nil && tables != nil {
			t.Errorf("%v beside %v", tables, err)
		}
	})
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
	m, err := New(sourcetest.Caller(time.Second), sourcetest.Secrets{}, query(sourcetest.Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") })))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	sourcetest.WantMissing(t, s, err, source.Credentials)
}

func TestMistakesNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Query){
		"address: ":                 func(q *Query) { q.Address = "influx" },
		"organization: missing":     func(q *Query) { q.Organization = "" },
		"maxAge: 10s; give 1m to":   func(q *Query) { q.MaxAge = 10 * time.Second },
		"query: there is no":        func(q *Query) { q.Args = nil },
		"query: argument service: ": func(q *Query) { q.Args = map[string]string{"service": `" or true`} },
	} {
		q := query("http://influx.example")
		change(&q)
		if _, err := New(sourcetest.Caller(time.Second), secrets, q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
