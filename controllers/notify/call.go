// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/egress"
)

// The headers of a request other than Content-Type and User-Agent.
const (
	// HeaderKey carries the UID of the Rollout, a slash, and the request's ID.
	HeaderKey = "Idempotency-Key"
	// HeaderSignature carries "sha256=" and the HMAC-SHA-256 of the body in
	// hexadecimal, when the endpoint has a signing key.
	HeaderSignature = "Serin-Signature"
)

// caller makes single attempts.
type caller struct {
	http    *http.Client
	secrets client.Reader
	options Options
}

// answer is what an attempt gave.
type answer struct {
	outcome Outcome
	message string
	// retryAfter is how long the endpoint wants to be left alone.
	retryAfter time.Duration
}

// err is why an attempt failed.
func (a answer) err() error {
	if a.outcome == Failed {
		return errors.New(a.message)
	}
	return nil
}

func newCaller(secrets client.Reader, policy egress.Policy, o Options) *caller {
	return &caller{
		secrets: secrets, options: o,
		// Each request is checked by the dialer; there are too few to share connections.
		http: egress.NewClient(policy, egress.Options{Timeout: o.Timeout, Roots: o.Roots}),
	}
}

// call sends a request once.
func (c *caller) call(ctx context.Context, namespace string, r Request) answer {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	request, err := c.request(ctx, namespace, r)
	if err != nil {
		return answer{outcome: Failed, message: c.describe(err)}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{outcome: Failed, message: c.describe(err)}
	}
	defer response.Body.Close()
	// The status is the answer. The body is taken so that a simple server does not
	// stumble over a connection that is closed while it writes; how that ends says nothing.
	_, _ = io.Copy(io.Discard, response.Body)
	return judge(response)
}

func (c *caller) request(ctx context.Context, namespace string, r Request) (*http.Request, error) {
	if err := egress.CheckURL(r.Endpoint.URL); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Endpoint.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, egress.ErrURL
	}
	request.Header.Set("Content-Type", r.ContentType)
	request.Header.Set("User-Agent", c.options.UserAgent)
	request.Header.Set(HeaderKey, r.key())
	if r.Endpoint.SigningKeyRef != nil {
		key, err := c.signingKey(ctx, namespace, r.Endpoint)
		if err != nil {
			return nil, err
		}
		request.Header.Set(HeaderSignature, sign(key, r.Body))
	}
	return request, nil
}

// sign returns the value of the header Serin-Signature.
func sign(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body) // a hash never fails
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// hostOf returns the host and port of a URL, which need not be valid.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
