// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/client-go/rest"
)

// MaxBody is the most bytes that are read of one answer: some two hundred thousand series.
const MaxBody = 64 << 20

var errTooLong = errors.New("the answer of the metrics store is too long; ask for fewer resources, or have the store keep fewer series")

// Server is where metrics are stored, as the operator of the cluster says.
type Server struct {
	// Address is a URL such as http://prometheus.monitoring:9090.
	Address string
	// CAFile has certificates that verify the server's; those of the system without it.
	CAFile string
	// TokenFile has the bearer token to send. It is read again when it changes.
	TokenFile string
	// CertFile and KeyFile are the client's certificate, if the server asks for one.
	CertFile, KeyFile string
	// UserAgent is sent in the header of that name.
	UserAgent string
}

// NewAPI makes a client that follows no redirect, uses no proxy of the environment and
// reads a bounded part of an answer. The error names the field and the fix.
func NewAPI(s Server) (promv1.API, error) {
	if u, err := url.Parse(s.Address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("address: is not an http or https URL; write it like http://prometheus.monitoring:9090")
	}
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: s.Address, BearerTokenFile: s.TokenFile, UserAgent: s.UserAgent,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile},
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return bounded{next} },
	})
	if err != nil {
		return nil, fmt.Errorf("the client of the metrics store: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	connection, err := api.NewClient(api.Config{Address: s.Address, Client: client})
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	return promv1.NewAPI(connection), nil
}

// bounded fails where an answer goes on for too long, and does not pass a part of it off
// as the whole.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err == nil {
		response.Body = &limited{ReadCloser: response.Body, left: MaxBody}
	}
	return response, err
}

type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
