// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Conformance is what the tests of all sources of APIs have in common. Q is the query of
// the source.
type Conformance[Q any] struct {
	// New is the source's own.
	New func(*fetch.Caller, source.Secrets, Q) (source.Measurer, error)
	// Query is a good one for the API at an address.
	Query func(address string) Q
	// Secrets that the query needs, each of them.
	Secrets Secrets
	// Answers without a number, by name.
	Answers map[string]Answer
	// Mistakes make a good query wrong. Their keys begin the error.
	Mistakes map[string]func(*Q)
}

// Answer is what an API answers, and why it is no measurement.
type Answer struct {
	Body string
	Want source.Reason
	// Handler answers instead of the body, unless nil.
	Handler http.HandlerFunc
}

// Measure asks a server that answers with the handler.
func (c Conformance[Q]) Measure(t *testing.T, handler http.HandlerFunc) (source.Sample, error) {
	t.Helper()
	return c.measurer(t, Caller(5*time.Second), c.Secrets, Serve(t, handler)).Measure(t.Context(), Now)
}

func (c Conformance[Q]) measurer(t *testing.T, caller *fetch.Caller, secrets Secrets, address string) source.Measurer {
	t.Helper()
	m, err := c.New(caller, secrets, c.Query(address))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Test checks that the source takes nothing for a number that is none, calls no API
// without its credentials, and names the field of a mistake.
func (c Conformance[Q]) Test(t *testing.T) {
	t.Helper()
	for name, answer := range c.Answers {
		t.Run("an answer without a number: "+name, func(t *testing.T) {
			handler := answer.Handler
			if handler == nil {
				handler = Says(http.StatusOK, answer.Body)
			}
			s, err := c.Measure(t, handler)
			WantMissing(t, s, err, answer.Want)
		})
	}
	t.Run("a server that fails", func(t *testing.T) {
		Failures(t, func(t *testing.T, caller *fetch.Caller, address string) source.Measurer {
			t.Helper()
			return c.measurer(t, caller, c.Secrets, address)
		})
	})
	for name := range c.Secrets {
		t.Run("without the credential "+name+" nothing is called", func(t *testing.T) {
			lacking := maps.Clone(c.Secrets)
			delete(lacking, name)
			address := Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("called") })
			s, err := c.measurer(t, Caller(time.Second), lacking, address).Measure(t.Context(), Now)
			WantMissing(t, s, err, source.Credentials)
		})
	}
	for want, change := range c.Mistakes {
		t.Run("a mistake in "+want, func(t *testing.T) {
			q := c.Query("https://api.example.com")
			change(&q)
			if _, err := c.New(Caller(time.Second), c.Secrets, q); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
