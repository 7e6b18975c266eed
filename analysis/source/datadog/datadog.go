// SPDX-License-Identifier: Apache-2.0

package datadog

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
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

// Measurer measures one Query.
type Measurer struct {
	caller  *fetch.Caller
	secrets source.Secrets
	query   Query
}

// New makes a Measurer. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (*Measurer, error) {
	if err := fetch.First(fetch.CheckAddress(q.Address), fetch.CheckWindow("window", q.Window)); err != nil {
		return nil, err
	}
	var err error
	if q.Query, err = args.Expand(q.Query, q.Args, args.Plain); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return &Measurer{caller: caller, secrets: secrets, query: q}, nil
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

// Measure asks the API.
func (m *Measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := m.caller.Limit(ctx)
	defer cancel()
	apiKey, err := m.query.APIKey.Read(ctx, m.secrets)
	if err != nil {
		return source.Sample{}, err
	}
	appKey, err := m.query.AppKey.Read(ctx, m.secrets)
	if err != nil {
		return source.Sample{}, err
	}
	asked := url.Values{
		"query": {m.query.Query},
		"from":  {strconv.FormatInt(at.Add(-m.query.Window).Unix(), 10)},
		"to":    {strconv.FormatInt(at.Unix(), 10)},
	}
	var got answer
	err = m.caller.JSON(ctx, fetch.Request{
		URL:    strings.TrimRight(m.query.Address, "/") + "/api/v1/query?" + asked.Encode(),
		Header: http.Header{"DD-API-KEY": {apiKey}, "DD-APPLICATION-KEY": {appKey}},
	}, &got)
	switch {
	case err != nil:
		return source.Sample{}, err
	case got.Status == "error" || got.Error != "":
		return source.Sample{}, &source.MissingError{Reason: source.Rejected, Message: "Datadog does not accept the query; try it there"}
	case got.Status != "ok":
		return source.Sample{}, source.Wrong("is none of Datadog's")
	}
	return source.Latest(got.points(), at, m.query.Window)
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
