// SPDX-License-Identifier: Apache-2.0

package newrelic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var (
	now     = sourcetest.Now
	secrets = sourcetest.Secrets{"newrelic/apiKey": "NRAK-1"}
)

func query(address string) Query {
	return Query{
		Address: address, AccountID: 7, NRQL: `SELECT percentage(count(*), WHERE error IS true) FROM Transaction WHERE appName = '{{args.service}}'`,
		Args: map[string]string{"service": "web-canary"}, APIKey: source.SecretKey{Name: "newrelic", Key: "apiKey"},
	}
}

func answered(rows string) string {
	return `{"data":{"actor":{"account":{"nrql":{"results":[` + rows + `]}}}}}`
}

func TestTheOnlyNumber(t *testing.T) {
	var asked struct {
		Variables struct {
			Account int64  `json:"account"`
			NRQL    string `json:"nrql"`
		} `json:"variables"`
		Query string `json:"query"`
	}
	var key string
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("API-Key")
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, answered(`{"percentage":1.25,"appName":"web"}`))
	})
	m, err := New(sourcetest.Caller(time.Second), secrets, query(address))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	if diff := cmp.Diff(source.Sample{At: now, Value: 1.25}, s); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	want := `SELECT percentage(count(*), WHERE error IS true) FROM Transaction WHERE appName = 'web-canary'`
	if key != "NRAK-1" || asked.Variables.Account != 7 || asked.Variables.NRQL != want || asked.Query != document {
		t.Errorf("asked %+v with %s", asked, key)
	}
}

func TestAnswersWithoutANumber(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want source.Reason
	}{
		"an error":           {`{"data":{},"errors":[{"message":"confidential"}]}`, source.Rejected},
		"another object":     {`{}`, source.Malformed},
		"no account":         {`{"data":{"actor":{"account":null}}}`, source.Malformed},
		"no rows":            {answered(``), source.NoData},
		"two rows":           {answered(`{"a":1},{"a":1}`), source.SeveralSeries},
		"two numbers":        {answered(`{"a":1,"b":1}`), source.SeveralSeries},
		"no number":          {answered(`{"a":"confidential","b":null}`), source.NoData},
		"too large a number": {answered(`{"a":1e999}`), source.NotANumber},
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
	m, err := New(sourcetest.Caller(time.Second), sourcetest.Secrets{}, query(sourcetest.Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") })))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	sourcetest.WantMissing(t, s, err, source.Credentials)
}

func TestMistakesNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Query){
		"address: ":                 func(q *Query) { q.Address = "newrelic" },
		"accountID: missing":        func(q *Query) { q.AccountID = 0 },
		"query: there is no":        func(q *Query) { q.Args = nil },
		"query: argument service: ": func(q *Query) { q.Args = map[string]string{"service": "' OR true"} },
	} {
		q := query("https://api.newrelic.com/graphql")
		change(&q)
		if _, err := New(sourcetest.Caller(time.Second), secrets, q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
