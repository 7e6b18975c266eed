// SPDX-License-Identifier: Apache-2.0

package graphite

import (
	"context"
	"encoding/base64"
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
	// Address of the server.
	Address string
	// Target that gives one series; its arguments must be names.
	Target string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// Window is how far back the target looks, and how old its newest point may be.
	Window time.Duration
	// Username and Password are the credentials; none when zero.
	Username, Password source.SecretKey
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
	if q.Target, err = args.Expand(q.Target, q.Args, args.Plain); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return &Measurer{caller: caller, secrets: secrets, query: q}, nil
}

// answer is Graphite's. A point is a number or null, and a time in seconds.
type answer []struct {
	Points [][2]*float64 `json:"datapoints"`
}

// Measure asks the server.
func (m *Measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := m.caller.Limit(ctx)
	defer cancel()
	header, err := m.header(ctx)
	if err != nil {
		return source.Sample{}, err
	}
	asked := url.Values{
		"target": {m.query.Target}, "format": {"json"},
		"from":  {strconv.FormatInt(at.Add(-m.query.Window).Unix(), 10)},
		"until": {strconv.FormatInt(at.Unix(), 10)},
	}
	var got answer
	if err := m.caller.JSON(ctx, fetch.Request{URL: strings.TrimRight(m.query.Address, "/") + "/render?" + asked.Encode(), Header: header}, &got); err != nil {
		return source.Sample{}, err
	}
	series := make([][]source.Point, len(got))
	for i, s := range got {
		for _, p := range s.Points {
			if p[1] != nil {
				series[i] = append(series[i], source.Point{At: time.Unix(int64(*p[1]), 0), Value: p[0]})
			}
		}
	}
	return source.Latest(series, at, m.query.Window)
}

func (m *Measurer) header(ctx context.Context) (http.Header, error) {
	username, err := m.query.Username.Read(ctx, m.secrets)
	if err != nil || username == "" {
		return http.Header{}, err
	}
	password, err := m.query.Password.Read(ctx, m.secrets)
	if err != nil {
		return nil, err
	}
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))}}, nil
}
