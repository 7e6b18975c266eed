// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Now is the present of tests.
var Now = time.Unix(1_784_400_000, 0).UTC()

// Confidential is a word that no message may hold. Servers say it.
const Confidential = "confidential"

// Caller reaches servers on this host.
func Caller(timeout time.Duration) *fetch.Caller {
	loopback := egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	return &fetch.Caller{HTTP: egress.NewClient(loopback, egress.Options{Timeout: timeout}), Timeout: timeout, UserAgent: "serin/test"}
}

// Secrets are those of one namespace, as name/key.
type Secrets map[string]string

// Secret returns one of them.
func (s Secrets) Secret(_ context.Context, of source.SecretKey, _ string) (string, error) {
	if v := s[of.Name+"/"+of.Key]; v != "" {
		return v, nil
	}
	return "", &source.MissingError{Reason: source.Credentials, Message: "the Secret " + of.Name + " is missing"}
}

// Serve answers each request with the handler, and returns the address.
func Serve(tb testing.TB, handler http.HandlerFunc) string {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return server.URL
}

// Says answers with a text.
func Says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// WantMissing checks that there is no measurement, for this reason, and that the message
// is short and holds no word of the server.
func WantMissing(tb testing.TB, s source.Sample, err error, want source.Reason) {
	tb.Helper()
	var missing *source.MissingError
	if !errors.As(err, &missing) || missing.Reason != want {
		tb.Fatalf("got %+v, %#v (%v); want %s", s, err, err, want)
	}
	if missing.Message == "" || len(missing.Message) > source.MaxMessage || strings.Contains(missing.Message, Confidential) {
		tb.Errorf("the message is %q", missing.Message)
	}
}

// Failures checks that a source takes no server at its word: every way in which a
// server of HTTP can fail gives a Missing. The function makes a source that asks the
// given address within the caller's time.
func Failures(t *testing.T, measurer func(t *testing.T, caller *fetch.Caller, address string) source.Measurer) {
	t.Helper()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    []source.Reason
	}{
		"an internal error":    {Says(500, Confidential), []source.Reason{source.Unavailable}},
		"too many requests":    {Says(429, Confidential), []source.Reason{source.Unavailable}},
		"missing credentials":  {Says(401, Confidential), []source.Reason{source.Rejected}},
		"a refusal":            {Says(403, Confidential), []source.Reason{source.Rejected}},
		"another page":         {Says(404, Confidential), []source.Reason{source.Rejected}},
		"a bad query":          {Says(400, Confidential), []source.Reason{source.Rejected}},
		"another format":       {Says(200, Confidential), []source.Reason{source.Malformed}},
		"nothing":              {Says(200, ""), []source.Reason{source.NoData, source.Malformed}},
		"a redirect":           {redirect, []source.Reason{source.Rejected}},
		"a hundred megabytes":  {flood, []source.Reason{source.TooLong, source.Malformed}}, // the SDK of AWS may see first that it is no answer of its protocol
		"a dropped connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []source.Reason{source.Unreachable}},
		"no answer":            {silence, []source.Reason{source.Timeout}},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := 10 * time.Second
			if test.want[0] == source.Timeout {
				timeout = 200 * time.Millisecond
			}
			s, err := measurer(t, Caller(timeout), Serve(t, test.handler)).Measure(t.Context(), Now)
			want := test.want[0]
			var missing *source.MissingError
			if len(test.want) > 1 && errors.As(err, &missing) && missing.Reason == test.want[1] {
				want = test.want[1]
			}
			WantMissing(t, s, err, want)
		})
	}
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/"+Confidential, http.StatusFound)
}

// silence reads the question, since only then the server notices that the client left.
func silence(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // how it ends says nothing
	<-r.Context().Done()
}

func flood(w http.ResponseWriter, _ *http.Request) {
	for chunk, left := strings.Repeat(" ", 64<<10), 100<<20; left > 0; left -= len(chunk) {
		if _, err := fmt.Fprint(w, chunk); err != nil {
			return
		}
	}
}
