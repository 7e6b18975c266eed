// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestARenderCanNotWriteAndEndsWithItsCall(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) }))
	defer server.Close()
	try := func(g *Guard, method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := g.Through(http.DefaultTransport).RoundTrip(request)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := try(&Guard{Context: t.Context(), ReadOnly: true}, method); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", method, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := try(&Guard{Context: ended}, http.MethodGet); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
