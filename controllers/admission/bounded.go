// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxReview is the most bytes of a question: an object as it is and as it is to be, of
	// which the API server stores 1.5 MiB each.
	maxReview = 4 << 20
	// readers is how many questions are read at the same time, each within readTime.
	readers  = 32
	readTime = 5 * time.Second
)

// Bounded bounds what handlers take in memory together. The API server has no identity
// here, so that every pod may ask, and a question takes fifty times its size once it is decoded:
// one is answered at a time.
func Bounded(c clock.PassiveClock) func(http.Handler) http.Handler {
	reading, answering := make(chan struct{}, readers), make(chan struct{}, 1)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !take(r.Context(), reading) {
				return
			}
			defer func() { <-reading }()
			connection := http.NewResponseController(w)
			// What is no connection has no deadline.
			_ = connection.SetReadDeadline(c.Now().Add(readTime))
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
			_ = connection.SetReadDeadline(time.Time{}) // else the context would end while it waits
			if err != nil {
				http.Error(w, "the question can't be read, or is too large", http.StatusRequestEntityTooLarge)
				return
			}
			if !take(r.Context(), answering) {
				return
			}
			a := &answer{header: http.Header{}, code: http.StatusOK}
			func() {
				defer func() { <-answering }()
				r.Body = io.NopCloser(bytes.NewReader(body))
				next.ServeHTTP(a, r)
			}()
			a.send(w)
		})
	}
}

// take waits for room until the context ends.
func take(ctx context.Context, room chan struct{}) bool {
	select {
	case room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer is kept until no other question waits for its receiver.
type answer struct {
	header http.Header
	code   int
	bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) { a.code = code }

func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = a.WriteTo(w) // who asked may be gone
}
