// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

const (
	// MaxBody is how many bytes of an answer can be read; the next one is an
	// ErrTooLong.
	MaxBody = 1 << 20

	maxHeaders = 64 << 10
)

// ErrTooLong is what reading an answer ends with that is longer than MaxBody.
var ErrTooLong = ownError("the answer is longer than 1 MiB")

// Options of a client.
type Options struct {
	// Timeout of one attempt to connect. The request's context bounds the rest.
	Timeout time.Duration
	// Roots verify the certificates of endpoints; nil means the system's.
	Roots *x509.CertPool
	// KeepAlive has connections used again. It is safe, since a connection goes where
	// the policy allowed it to go, and pays where the same endpoint is asked all the time.
	KeepAlive bool
	// Resolver finds the addresses of names; nil means the system's.
	Resolver *net.Resolver
}

// NewClient makes a client that reaches what the policy allows, follows no redirect,
// uses no proxy of the environment, and reads no more than MaxBody of an answer.
func NewClient(policy Policy, o Options) *http.Client {
	dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: policy.control, Resolver: o.Resolver}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, errNoTCP
		}
		return dialer.DialContext(context.WithValue(ctx, namedKey{}, policy.named(host, port)), network, address)
	}
	return &http.Client{
		// A redirect is an answer like any other: what may be called is the endpoint.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: bounded{policy: policy, Transport: &http.Transport{
			Proxy:                  nil, // the environment of the operator is not the tenant's business
			DialContext:            dial,
			DisableKeepAlives:      !o.KeepAlive,
			MaxIdleConnsPerHost:    2,
			MaxIdleConns:           256,
			IdleConnTimeout:        90 * time.Second,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaders,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		}},
	}
}

// bounded cuts answers off, also for libraries that read them to the end.
type bounded struct {
	*http.Transport
	policy Policy
}

// RoundTrip checks the URL, which a library may have made from one that was fine.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := checkURL(request.URL); err != nil {
		return nil, err
	}
	if err := b.policy.checkHost(request.URL); err != nil {
		return nil, err
	}
	response, err := b.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &limited{ReadCloser: response.Body, left: MaxBody}
	return response, nil
}

// limited is a body that fails after so many bytes. Unlike io.LimitReader it does not
// pass a part off as the whole.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, ErrTooLong
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n - 1, ErrTooLong
	}
	return n, err
}

// ErrURL is a URL that is never called.
var ErrURL = errors.New("is not a valid http or https URL without a user name; correct it")

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// CheckURL returns ErrURL for what is not called. It is the last guard: a pattern in
// a schema lets URLs through that parse to something else than they look like.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return ErrURL
	}
	return checkURL(u)
}

func checkURL(u *url.URL) error {
	// Letters beyond ASCII are made into others before the name is resolved.
	if u.User != nil || u.Hostname() == "" || !ascii(u.Host) || u.Scheme != "http" && u.Scheme != "https" {
		return ErrURL
	}
	return nil
}
