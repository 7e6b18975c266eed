// SPDX-License-Identifier: Apache-2.0

package newrelic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var now = sourcetest.Now

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
	var called struct {
		Variables struct {
			Account int64  `json:"account"`
			NRQL    string `json:"nrql"`
		} `json:"variables"`
		Query string `json:"query"`
	}
	var key string
	s, err := conformance.Measure(t, func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("API-Key")
		if err := json.NewDecoder(r.Body).Decode(&called); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, answered(`{"percentage":1.25,"appName":"web"}`))
	})
	if diff := cmp.Diff(source.Sample{At: now, Value: 1.25}, s); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	want := `SELECT percentage(count(*), WHERE error IS true) FROM Transaction WHERE appName = 'web-canary'`
	if key != "NRAK-1" || called.Variables.Account != 7 || called.Variables.NRQL != want || called.Query != document {
		t.Errorf("called %+v with %s", called, key)
	}
}

var conformance = sourcetest.Conformance[Query]{
	New: New, Query: query, Secrets: sourcetest.Secrets{"newrelic/apiKey": "NRAK-1"},
	Answers: map[string]sourcetest.Answer{
		"an error":           {Body: `{"data":{},"errors":[{"message":"confidential"}]}`, Want: source.Rejected},
		"another object":     {Body: `{}`, Want: source.Malformed},
		"no account":         {Body: `{"data":{"actor":{"account":null}}}`, Want: source.Malformed},
		"no rows":            {Body: answered(``), Want: source.NoData},
		"two rows":           {Body: answered(`{"a":1},{"a":1}`), Want: source.SeveralSeries},
		"two numbers":        {Body: answered(`{"a":1,"b":1}`), Want: source.SeveralSeries},
		"no number":          {Body: answered(`{"a":"confidential","b":null}`), Want: source.NoData},
		"too large a number": {Body: answered(`{"a":1e999}`), Want: source.NotANumber},
	},
	Mistakes: map[string]func(*Query){
		"address: ":                 func(q *Query) { q.Address = "newrelic" },
		"accountID: missing":        func(q *Query) { q.AccountID = 0 },
		"query: there is no":        func(q *Query) { q.Args = nil },
		"query: argument service: ": func(q *Query) { q.Args = map[string]string{"service": "' OR true"} },
	},
}

func TestConformance(t *testing.T) { conformance.Test(t) }
