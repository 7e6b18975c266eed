// SPDX-License-Identifier: Apache-2.0

package datadog

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/args"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Query is one metric.
type Query struct {
	// Address of the API, such as https://api.datadoghq.com.
	Address string
	// Query that gives one series; its arguments must be names.
	Query string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// Window is how far back the query looks, and how old its newest point may be.
	Window time.Duration
	// APIKey and AppKey are the credentials.
	APIKey, AppKey source.SecretKey
}

// New makes what measures a Query. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (source.Measurer, error) {
	if err := fetch.First(fetch.CheckAddress(q.Address), fetch.CheckWindow("window", q.Window)); err != nil {
		return nil, err
	}
	query, err := args.Expand(q.Query, q.Args, args.Plain)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return &fetch.Measurer{
		Caller: caller, Secrets: secrets, Address: q.Address, Keys: []source.SecretKey{q.APIKey, q.AppKey},
		Request: func(at time.Time, keys []string) (fetch.Request, error) {
			values := url.Values{"query": {query}, "from": {fetch.Unix(at.Add(-q.Window))}, "to": {fetch.Unix(at)}}
			return fetch.Request{
				URL:    strings.TrimRight(q.Address, "/") + "/api/v1/query?" + values.Encode(),
				Header: http.Header{"DD-API-KEY": {keys[0]}, "DD-APPLICATION-KEY": {keys[1]}},
			}, nil
		},
		Read: fetch.JSON(q.read),
	}, nil
}

// answer is the part of Datadog's that is needed. A point is a time in milliseconds and
// a number or null.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Series []struct {
		Points [][2]*float64 `json:"pointlist"`
	} `json:"series"`
}

func (q Query) read(got answer, at time.Time) (source.Sample, error) {
	switch {
	case got.Status == "error" || got.Error != "":
		return source.Sample{}, &source.MissingError{Reason: source.Rejected, Message: "Datadog does not accept the query; try it there"}
	case got.Status != "ok":
		return source.Sample{}, source.Wrong("is not in the format of Datadog")
	}
	return source.Latest(got.points(), at, q.Window)
}

func (a answer) points() [][]source.Point {
	series := make([][]source.Point, len(a.Series))
	for i, s := range a.Series {
		for _, p := range s.Points {
			if p[0] != nil {
				series[i] = append(series[i], source.Point{At: time.UnixMilli(int64(*p[0])), Value: p[1]})
			}
		}
	}
	return series
}
