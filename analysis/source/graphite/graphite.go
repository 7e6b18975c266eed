// SPDX-License-Identifier: Apache-2.0

package graphite

import (
	"encoding/base64"
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

// New makes what measures a Query. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (source.Measurer, error) {
	if err := fetch.First(fetch.CheckAddress(q.Address), fetch.CheckWindow("window", q.Window)); err != nil {
		return nil, err
	}
	target, err := args.Expand(q.Target, q.Args, args.Plain)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return &fetch.Measurer{
		Caller: caller, Secrets: secrets, Address: q.Address, Keys: []source.SecretKey{q.Username, q.Password},
		Request: func(at time.Time, login []string) (fetch.Request, error) {
			values := url.Values{"target": {target}, "format": {"json"}, "from": {fetch.Unix(at.Add(-q.Window))}, "until": {fetch.Unix(at)}}
			request := fetch.Request{URL: strings.TrimRight(q.Address, "/") + "/render?" + values.Encode()}
			if username, password := login[0], login[1]; username != "" {
				request.Header = http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))}}
			}
			return request, nil
		},
		Read: fetch.JSON(q.read),
	}, nil
}

// answer is Graphite's. A point is a number or null, and a time in seconds.
type answer []struct {
	Points [][2]*float64 `json:"datapoints"`
}

func (q Query) read(got answer, at time.Time) (source.Sample, error) {
	series := make([][]source.Point, len(got))
	for i, s := range got {
		for _, p := range s.Points {
			if p[1] != nil {
				series[i] = append(series[i], source.Point{At: time.Unix(int64(*p[1]), 0), Value: p[0]})
			}
		}
	}
	return source.Latest(series, at, q.Window)
}
