// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Guard is between Helm and the API server. Helm takes no context for most of its
// requests, and makes texts of errors that quote templates: so the guard ends them
// with the call, keeps a render from writing, and notes what went wrong.
type Guard struct {
	// Context of the call.
	Context context.Context //nolint:containedctx // Helm has no parameter for it
	// ReadOnly refuses requests that write.
	ReadOnly bool
	// Account is who the call acts as, for messages.
	Account string
	// MaxAnswer is the most bytes of an answer that are read; 0 for any number.
	MaxAnswer int64

	mutex sync.Mutex
	// denied is the last right that was lacking, broken the last failure of the API
	// server or of the way there.
	denied, broken error
}

// ErrReadOnly refuses a request that writes.
var ErrReadOnly = errors.New("a render may not write")

// Through is a transport that passes the guard.
func (g *Guard) Through(next http.RoundTripper) http.RoundTripper { return through{g, next} }

// through is the guard for one transport; clients have several.
type through struct {
	guard *Guard
	next  http.RoundTripper
}

func (t through) RoundTrip(r *http.Request) (*http.Response, error) { return t.guard.trip(t.next, r) }

func (g *Guard) trip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if err := g.Context.Err(); err != nil {
		return nil, err
	}
	if g.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, ErrReadOnly
	}
	response, err := next.RoundTrip(r)
	if err != nil {
		g.note(&g.broken, FailureError("the API server can't be reached"))
		return nil, err
	}
	if g.MaxAnswer > 0 {
		response.Body = &limited{ReadCloser: response.Body, guard: g, left: g.MaxAnswer}
	}
	switch {
	case response.StatusCode == http.StatusForbidden:
		g.note(&g.denied, g.denial(r, response))
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		g.note(&g.broken, FailureError("the API server answered "+strconv.Itoa(response.StatusCode)))
	}
	return response, nil
}

// limited is a body that ends with an error after so many bytes.
type limited struct {
	io.ReadCloser
	guard *Guard
	left  int64
}

var errTooLarge = errors.New("the answer is too large")

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.guard.note(&l.guard.broken, FailureError(fmt.Sprintf("the API server's answer has more than %d MiB: there are too many records of the release, or their annotations are large", l.guard.MaxAnswer>>20)))
		return 0, errTooLarge
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func (g *Guard) note(where *error, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if err != nil {
		*where = err
	}
}

// Trouble is what lies behind an error of Helm: a right that was lacking, or an API
// server that failed; nil when it is something else.
func (g *Guard) Trouble() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.Context.Err() != nil {
		return g.Context.Err()
	}
	if g.denied != nil {
		return g.denied
	}
	return g.broken
}

const maxStatus = 64 << 10

// denial tells which right was lacking. The answer is JSON, protobuf or CBOR, and
// read for its kind only: an admission plugin may refuse with any text.
func (g *Guard) denial(r *http.Request, response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	if err != nil {
		body = nil // it says nothing that is needed
	}
	info, err := (&request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}).NewRequestInfo(r)
	if err != nil {
		return Invalid(FieldRelease, "ServiceAccount "+g.Account+" lacks a right")
	}
	switch {
	case bytes.Contains(body, []byte("cannot impersonate ")):
		return Invalid(FieldRelease, "Serin is not allowed to impersonate ServiceAccount "+g.Account+": give Serin's own ServiceAccount that right")
	case bytes.Contains(body, []byte("cannot "+info.Verb+" ")):
		return Invalid(FieldRelease, "ServiceAccount "+g.Account+" may not "+right(info)+": create the account, and give it that right with a Role and a RoleBinding")
	default:
		return Invalid(FieldRelease, "an admission policy or a quota does not let ServiceAccount "+g.Account+" "+right(info)+": see why with helm upgrade --dry-run=server")
	}
}

func right(info *request.RequestInfo) string {
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	if info.APIGroup != "" {
		resource += " of " + info.APIGroup
	}
	if info.Resource == "" {
		resource = "the API's description"
	}
	if info.Namespace != "" {
		resource += " in namespace " + info.Namespace
	}
	return info.Verb + " " + resource
}
