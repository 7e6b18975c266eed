// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/args"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Query is one metric.
type Query struct {
	// URL that is called with GET. Arguments can be in its path and its query.
	URL string
	// Headers of the request.
	Headers []Header
	// JSONPath leads to the number.
	JSONPath string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// Confined queries belong to a namespace. The answers of Prometheus, which are of the
	// whole cluster unless the provider for it asks, are refused to them.
	Confined bool
}

// Header is one header of the request.
type Header struct {
	Name string
	// Value is what is sent, with {{secret}} replaced by the Secret's value where there
	// is one.
	Value string
	// Secret is a credential in the header; none when zero.
	Secret source.SecretKey
}

// SecretPlace is where the value of a Secret goes in a header.
const SecretPlace = "{{secret}}"

// New makes what measures a Query. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (source.Measurer, error) {
	address, err := args.URL(q.URL, q.Args)
	if err == nil {
		err = egress.CheckURL(address)
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	place, err := newPath(q.JSONPath)
	if err != nil {
		return nil, fmt.Errorf("jsonPath: %w", err)
	}
	keys := make([]source.SecretKey, len(q.Headers))
	for i, h := range q.Headers {
		if err := h.validate(); err != nil {
			return nil, fmt.Errorf("headers[%d].%w", i, err)
		}
		keys[i] = h.Secret
	}
	return &fetch.Measurer{
		Caller: caller, Secrets: secrets, Address: address, Keys: keys,
		Request: func(_ time.Time, values []string) (fetch.Request, error) {
			header, err := headerOf(q.Headers, values)
			return fetch.Request{URL: address, Header: header}, err
		},
		Read: func(answer []byte, at time.Time) (source.Sample, error) {
			if q.Confined && ofPrometheus(answer) {
				return source.Sample{}, &source.MissingError{Reason: source.Refused, Message: "url: answers as Prometheus does, which web can't confine to the namespace; use the provider prometheus"}
			}
			value, err := place.number(answer)
			if err != nil {
				return source.Sample{}, err
			}
			return source.Finite(at, value)
		},
	}, nil
}

// ofPrometheus is whether an answer is one of the API of Prometheus, which many systems speak,
// at any path: of a query, or of what else tells numbers of all namespaces.
func ofPrometheus(answer []byte) bool {
	var a struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return false
	}
	return hasExemplars(a.Data) || hasNumbers(a.Data)
}

// hasExemplars is whether data is that of query_exemplars.
func hasExemplars(data []byte) bool {
	var list []struct {
		SeriesLabels json.RawMessage `json:"seriesLabels"`
	}
	return json.Unmarshal(data, &list) == nil && len(list) > 0 && list[0].SeriesLabels != nil
}

// hasNumbers is whether data is that of a query, of alerts or rules, or of the server itself.
func hasNumbers(data []byte) bool {
	var d struct {
		ResultType string          `json:"resultType"` // query, query_range
		Result     json.RawMessage `json:"result"`
		Alerts     []struct {
			ActiveAt json.RawMessage `json:"activeAt"`
		} `json:"alerts"`
		Groups []struct {
			Rules json.RawMessage `json:"rules"`
		} `json:"groups"`
		ActiveTargets json.RawMessage `json:"activeTargets"` // targets
		HeadStats     json.RawMessage `json:"headStats"`     // status/tsdb
	}
	if json.Unmarshal(data, &d) != nil {
		return false
	}
	return d.ResultType != "" && d.Result != nil || len(d.Alerts) > 0 && d.Alerts[0].ActiveAt != nil ||
		len(d.Groups) > 0 && d.Groups[0].Rules != nil || d.ActiveTargets != nil || d.HeadStats != nil
}

// taken are headers that say how a message is framed or where it goes.
var taken = map[string]bool{
	"Host": true, "Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Upgrade": true, "Te": true, "Trailer": true, "Accept-Encoding": true,
}

func (h Header) validate() error {
	switch {
	case !httpguts.ValidHeaderFieldName(h.Name):
		return errors.New("name: is not the name of a header; correct it")
	case taken[http.CanonicalHeaderKey(h.Name)]:
		return fmt.Errorf("name: %s is set by Serin; remove it", http.CanonicalHeaderKey(h.Name))
	case !httpguts.ValidHeaderFieldValue(h.Value):
		return errors.New("value: has characters that no header may have; remove them")
	}
	return nil
}

// headerOf has the headers with their Secrets' values.
func headerOf(headers []Header, secrets []string) (http.Header, error) {
	header := http.Header{"Accept": {"application/json"}}
	for i, h := range headers {
		value := strings.ReplaceAll(h.Value, SecretPlace, secrets[i])
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, &source.MissingError{Reason: source.Credentials, Message: "the Secret for the header " + h.Name + " has characters that no header may have, such as a line end; remove them"}
		}
		header.Set(h.Name, value)
	}
	return header, nil
}
