// SPDX-License-Identifier: Apache-2.0

package newrelic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/args"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Query is one metric.
type Query struct {
	// Address of the API, such as https://api.newrelic.com/graphql.
	Address string
	// AccountID is the number of the account.
	AccountID int64
	// NRQL gives one number; its arguments must be names.
	NRQL string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// APIKey is a user key.
	APIKey source.SecretKey
}

// document asks for the rows; what is variable in it is passed as a variable.
const document = `query($account: Int!, $nrql: Nrql!) { actor { account(id: $account) { nrql(query: $nrql) { results } } } }`

// New makes what measures a Query. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (source.Measurer, error) {
	if err := fetch.CheckAddress(q.Address); err != nil {
		return nil, err
	}
	if q.AccountID < 1 {
		return nil, errors.New("accountID: missing; give the number of the account")
	}
	nrql, err := args.Expand(q.NRQL, q.Args, args.Plain)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	body, err := json.Marshal(map[string]any{"query": document, "variables": map[string]any{"account": q.AccountID, "nrql": nrql}})
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return &fetch.Measurer{
		Caller: caller, Secrets: secrets, Address: q.Address, Keys: []source.SecretKey{q.APIKey},
		Request: func(_ time.Time, keys []string) (fetch.Request, error) {
			return fetch.Request{Method: http.MethodPost, URL: q.Address, Body: body, Header: http.Header{"API-Key": {keys[0]}}}, nil
		},
		Read: fetch.JSON(read),
	}, nil
}

// answer is the part of New Relic's that is needed. A row has its values by name.
type answer struct {
	Errors []struct{} `json:"errors"`
	Data   struct {
		Actor struct {
			Account *struct {
				NRQL *struct {
					Results []map[string]any `json:"results"`
				} `json:"nrql"`
			} `json:"account"`
		} `json:"actor"`
	} `json:"data"`
}

func read(got answer, at time.Time) (source.Sample, error) {
	account := got.Data.Actor.Account
	switch {
	case len(got.Errors) > 0:
		return source.Sample{}, &source.MissingError{Reason: source.Rejected, Message: "New Relic does not accept the query; try it there"}
	case account == nil || account.NRQL == nil:
		return source.Sample{}, source.Wrong("is not in the format of New Relic")
	}
	return one(account.NRQL.Results, at)
}

// one is the only number of the only row. A time series has several rows, and a facet
// has several rows or values; what is no number, such as the name of a facet, is left
// out.
func one(rows []map[string]any, at time.Time) (source.Sample, error) {
	switch {
	case len(rows) == 0:
		return source.Sample{}, source.Empty()
	case len(rows) > 1:
		return source.Sample{}, source.Several(len(rows))
	}
	var numbers []float64
	for _, value := range rows[0] {
		n, ok := value.(json.Number)
		if !ok {
			continue
		}
		v, err := n.Float64()
		if err != nil {
			return source.Sample{}, &source.MissingError{Reason: source.NotANumber, Message: "the answer has a number that is too large"}
		}
		numbers = append(numbers, v)
	}
	switch {
	case len(numbers) == 0:
		return source.Sample{}, source.Empty()
	case len(numbers) > 1:
		return source.Sample{}, source.Several(len(numbers))
	}
	return source.Finite(at, numbers[0])
}
