// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
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
	// URL that is asked with GET. Arguments can be in its path and its query.
	URL string
	// Headers of the request.
	Headers []Header
	// JSONPath leads to the number.
	JSONPath string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
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

// Measurer measures one Query.
type Measurer struct {
	caller  *fetch.Caller
	secrets source.Secrets
	url     string
	headers []Header
	path    path
}

// New makes a Measurer. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (*Measurer, error) {
	m := &Measurer{caller: caller, secrets: secrets, headers: q.Headers}
	var err error
	if m.url, err = args.URL(q.URL, q.Args); err == nil {
		err = egress.CheckURL(m.url)
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if m.path, err = newPath(q.JSONPath); err != nil {
		return nil, fmt.Errorf("jsonPath: %w", err)
	}
	for i, h := range q.Headers {
		if err := h.validate(); err != nil {
			return nil, fmt.Errorf("headers[%d].%w", i, err)
		}
	}
	return m, nil
}

// taken are headers that say how a message is framed or where it goes.
var taken = map[string]bool{
	"Host": true, "Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Upgrade": true, "Te": true, "Trailer": true, "Accept-Encoding": true,
}

func (h Header) validate() error {
	switch {
	case !httpguts.ValidHeaderFieldName(h.Name):
		return errors.New("name: is no name of a header; correct it")
	case taken[http.CanonicalHeaderKey(h.Name)]:
		return fmt.Errorf("name: %s is set by Serin; remove it", http.CanonicalHeaderKey(h.Name))
	case !httpguts.ValidHeaderFieldValue(h.Value):
		return errors.New("value: has characters that no header may have; remove them")
	}
	return nil
}

// Measure asks the endpoint.
func (m *Measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := m.caller.Limit(ctx)
	defer cancel()
	header, err := m.header(ctx)
	if err != nil {
		return source.Sample{}, err
	}
	body, err := m.caller.Bytes(ctx, fetch.Request{URL: m.url, Header: header})
	if err != nil {
		return source.Sample{}, err
	}
	value, err := m.path.number(body)
	if err != nil {
		return source.Sample{}, err
	}
	return source.Finite(at, value)
}

func (m *Measurer) header(ctx context.Context) (http.Header, error) {
	header := http.Header{"Accept": {"application/json"}}
	for _, h := range m.headers {
		secret, err := h.Secret.Read(ctx, m.secrets)
		if err != nil {
			return nil, err
		}
		value := strings.ReplaceAll(h.Value, SecretPlace, secret)
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, &source.MissingError{Reason: source.Credentials, Message: "the Secret for the header " + h.Name + " has characters that no header may have, such as a line end; remove them"}
		}
		header.Set(h.Name, value)
	}
	return header, nil
}
