// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
)

// DefaultTimeout is how long a measurement may take.
const DefaultTimeout = 10 * time.Second

// Caller makes the calls of all sources. Its fields are not changed once it is used.
type Caller struct {
	// HTTP is a client that egress.NewClient made.
	HTTP *http.Client
	// Timeout of one measurement; DefaultTimeout when zero.
	Timeout time.Duration
	// UserAgent is sent in the header of that name.
	UserAgent string

	turns turns
}

// Request is one call.
type Request struct {
	// Method is GET when empty.
	Method, URL string
	Header      http.Header
	// Body is JSON, if there is one.
	Body []byte
}

// Limit returns the context of one measurement.
func (c *Caller) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout())
}

func (c *Caller) timeout() time.Duration {
	if c.Timeout <= 0 {
		return DefaultTimeout
	}
	return c.Timeout
}

// Decode reads one JSON value and nothing after it.
func Decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return source.Empty()
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(into) != nil {
		return source.Wrong("is not the JSON that was expected")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return source.Wrong("has more than one JSON value")
	}
	return nil
}

// Bytes sends a request and returns the answer of a status of 200 to 299.
func (c *Caller) Bytes(ctx context.Context, r Request) ([]byte, error) {
	ctx, cancel := c.Limit(ctx)
	defer cancel()
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, c.Missing(egress.ErrURL)
	}
	if len(r.Body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("User-Agent", c.UserAgent)
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, c.Missing(err)
	}
	defer response.Body.Close()
	if err := Status(response.StatusCode); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, c.Missing(err)
	}
	return body, nil
}

// Status is nil for 200 to 299, and otherwise the Missing for it.
func Status(code int) error {
	if code >= 200 && code < 300 {
		return nil
	}
	m := &source.MissingError{Reason: source.Rejected, Message: strings.TrimSpace(fmt.Sprintf("answered %d %s", code, http.StatusText(code)))}
	switch {
	case code >= 300 && code < 400:
		m.Message += ": redirects are not followed; write the final address"
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		m.Message += "; check the credentials"
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		m.Reason = source.Unavailable
	}
	return m
}

// Missing is the source.MissingError for an error of the HTTP client. What is one already
// stays as it is.
func (c *Caller) Missing(err error) error {
	if known, ok := errors.AsType[*source.MissingError](err); ok {
		return known
	}
	m := &source.MissingError{Reason: source.Unreachable, Message: egress.Describe(err, c.timeout())}
	switch {
	case errors.Is(err, egress.ErrTooLong):
		m.Reason = source.TooLong
	case errors.Is(err, egress.ErrURL), egress.IsRefused(err):
		m.Reason = source.Refused
	case egress.IsTimeout(err):
		m.Reason = source.Timeout
	}
	return m
}
