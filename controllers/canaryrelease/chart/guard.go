// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// guard is between Helm and the API server. Helm takes no context for most of its
// requests, and makes texts of errors that quote templates: so the guard ends them
// with the call, keeps a render from writing, and notes what went wrong.
type guard struct {
	ctx      context.Context //nolint:containedctx // Helm has no parameter for it
	readOnly bool
	account  string

	mutex sync.Mutex
	// denied is the last right that was lacking, broken the last failure of the API
	// server or of the way there.
	denied, broken error
}

// failure is an error whose text is safe to show, and which may pass by itself.
type failure string

func (f failure) Error() string { return string(f) }

var errReadOnly = errors.New("a render may not write")

func (g *guard) trip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if err := g.ctx.Err(); err != nil {
		return nil, err
	}
	if g.readOnly && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, errReadOnly
	}
	response, err := next.RoundTrip(r)
	if err != nil {
		g.note(&g.broken, failure("the API server can't be reached"))
		return nil, err
	}
	switch {
	case response.StatusCode == http.StatusForbidden:
		g.note(&g.denied, g.denial(r, response))
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		g.note(&g.broken, failure("the API server answered "+strconv.Itoa(response.StatusCode)))
	}
	return response, nil
}

func (g *guard) note(where *error, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if err != nil {
		*where = err
	}
}

// trouble is what lies behind an error of Helm: a right that was lacking, or an API
// server that failed; nil when it is something else.
func (g *guard) trouble() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.ctx.Err() != nil {
		return g.ctx.Err()
	}
	if g.denied != nil {
		return g.denied
	}
	return g.broken
}

const maxStatus = 64 << 10

// denial tells which right was lacking. The answer is JSON, protobuf or CBOR, and
// read for its kind only: an admission plugin may refuse with any text.
func (g *guard) denial(r *http.Request, response *http.Response) error {
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
		return InvalidError{fieldRelease, "ServiceAccount " + g.account + " lacks a right"}
	}
	switch {
	case bytes.Contains(body, []byte("cannot impersonate ")):
		return InvalidError{fieldRelease, "Serin may not act as ServiceAccount " + g.account + ": give its own ServiceAccount the right to impersonate it"}
	case bytes.Contains(body, []byte("cannot "+info.Verb+" ")):
		return InvalidError{fieldRelease, "ServiceAccount " + g.account + " may not " + right(info) + ": create it, and give it that right with a Role and a RoleBinding"}
	default:
		return InvalidError{fieldRelease, "an admission policy or a quota does not let ServiceAccount " + g.account + " " + right(info) + ": see why with helm upgrade --dry-run=server"}
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
