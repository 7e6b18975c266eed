// SPDX-License-Identifier: Apache-2.0

package prometheus

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

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

var (
	loopback = egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	now      = time.Unix(1_784_400_000, 0).UTC()
)

func caller() *fetch.Caller {
	return &fetch.Caller{
		HTTP:    egress.NewClient(loopback, egress.Options{Timeout: time.Minute, KeepAlive: true}),
		Timeout: time.Minute, UserAgent: "serin/test",
	}
}

// token is a namespace with one Secret.
type token struct{ value string }

func (s token) Secret(_ context.Context, of source.SecretKey, _ string) (string, error) {
	if of != (source.SecretKey{Name: "prometheus", Key: "token"}) || s.value == "" {
		return "", &source.MissingError{Reason: source.Credentials, Message: "there is no such Secret"}
	}
	return s.value, nil
}

func measure(t *testing.T, q Query, at time.Time) (source.Sample, error) {
	t.Helper()
	m, err := New(caller(), token{"t0ken"}, q)
	if err != nil {
		t.Fatal(err)
	}
	return m.Measure(t.Context(), at)
}

// reason checks that a measurement is missing and says nothing that the server said.
func reason(t *testing.T, s source.Sample, err error, want source.Reason) {
	t.Helper()
	var missing *source.MissingError
	if !errors.As(err, &missing) || missing.Reason != want {
		t.Fatalf("got %+v, %#v; want %s", s, err, want)
	}
	if strings.Contains(missing.Message, "confidential") || missing.Message == "" || len(missing.Message) > source.MaxMessage {
		t.Errorf("the message is %q", missing.Message)
	}
}

func answers(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func data(kind, result string) string {
	return `{"status":"success","data":{"resultType":"` + kind + `","result":` + result + `}}`
}

func TestALyingServerGivesNoNumber(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    source.Reason
	}{
		"an empty vector":              {says(200, data("vector", `[]`)), source.NoData},
		"two series":                   {says(200, data("vector", `[{"metric":{"a":"confidential"},"value":[1,"1"]},{"metric":{},"value":[1,"1"]}]`)), source.SeveralSeries},
		"NaN":                          {says(200, data("vector", `[{"metric":{},"value":[1,"NaN"]}]`)), source.NotANumber},
		"an infinity":                  {says(200, data("scalar", `[1,"+Inf"]`)), source.NotANumber},
		"a negative infinity":          {says(200, data("vector", `[{"metric":{},"value":[1,"-Inf"]}]`)), source.NotANumber},
		"a warning":                    {says(200, `{"status":"success","warnings":["confidential"],"data":{"resultType":"scalar","result":[1,"1"]}}`), source.Partial},
		"a string":                     {says(200, data("string", `[1,"confidential"]`)), source.Malformed},
		"a matrix":                     {says(200, data("matrix", `[]`)), source.Malformed},
		"a native histogram":           {says(200, data("vector", `[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[]}]}]`)), source.Malformed},
		"half of the JSON":             {says(200, `{"status":"success","data":{"resultType":"vec`), source.Malformed},
		"no JSON":                      {says(200, "confidential"), source.Malformed},
		"nothing":                      {says(200, ""), source.Malformed},
		"a value that is no text":      {says(200, data("scalar", `[1,1]`)), source.Malformed},
		"a value that is no number":    {says(200, data("scalar", `[1,"confidential"]`)), source.Malformed},
		"a query that it won't take":   {says(400, `{"status":"error","errorType":"bad_data","error":"confidential"}`), source.Rejected},
		"a query that fails":           {says(422, `{"status":"error","errorType":"execution","error":"confidential"}`), source.Rejected},
		"a query that was given up":    {says(422, `{"status":"error","errorType":"timeout","error":"confidential"}`), source.Timeout},
		"a query that takes too long":  {says(503, `{"status":"error","errorType":"timeout","error":"confidential"}`), source.Unavailable},
		"a success that is an error":   {says(422, `{"status":"success","data":"confidential"}`), source.Malformed},
		"an error that is a success":   {says(200, `{"status":"error","errorType":"bad_data","error":"confidential"}`), source.Rejected},
		"an internal error":            {says(500, "confidential"), source.Unavailable},
		"missing credentials":          {says(401, "confidential"), source.Rejected},
		"another page":                 {says(404, "confidential"), source.Rejected},
		"a redirect":                   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/confidential", http.StatusFound) }, source.Malformed},
		"a body of 100 MB":             {func(w http.ResponseWriter, _ *http.Request) { flood(w) }, source.TooLong},
		"a connection that is dropped": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, source.Unreachable},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
			<-r.Context().Done()
		}, source.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			c := caller()
			if test.want == source.Timeout {
				c.Timeout = 200 * time.Millisecond
			}
			m, err := New(c, token{}, Query{Address: answers(t, test.handler), PromQL: "up"})
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.Measure(t.Context(), now)
			reason(t, s, err, test.want)
		})
	}
}

func flood(w http.ResponseWriter) {
	fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[`)
	for chunk, left := strings.Repeat(" ", 64<<10), 100<<20; left > 0; left -= len(chunk) {
		if _, err := fmt.Fprint(w, chunk); err != nil {
			return
		}
	}
}

func TestAServerThatIsDownIsUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s, err := measure(t, Query{Address: server.URL, PromQL: "up"}, now)
	reason(t, s, err, source.Unreachable)
}

func TestAnAddressThatMayNotBeCalledIsRefused(t *testing.T) {
	m, err := New(&fetch.Caller{HTTP: egress.NewClient(egress.Policy{}, egress.Options{Timeout: time.Second})}, token{}, Query{Address: "http://127.0.0.1:1", PromQL: "up"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	reason(t, s, err, source.Refused)
}

func TestTheTokenIsSentAndReadEachTime(t *testing.T) {
	var got []string
	address := answers(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization")+" "+r.Header.Get("User-Agent"))
		says(200, data("scalar", `[1,"1"]`))(w, r)
	})
	q := Query{Address: address, PromQL: "1", Bearer: source.SecretKey{Name: "prometheus", Key: "token"}}
	if _, err := measure(t, q, now); err != nil || len(got) != 1 || got[0] != "Bearer t0ken serin/test" {
		t.Errorf("got %q, %v", got, err)
	}
	m, err := New(caller(), token{}, q)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	reason(t, s, err, source.Credentials)
	if len(got) != 1 {
		t.Error("asked without the token")
	}
}

func TestTheServerIsToldHowOldASampleMayBe(t *testing.T) {
	var got []string
	address := answers(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.FormValue("lookback_delta"))
		says(200, data("scalar", `[1,"1"]`))(w, r)
	})
	for _, age := range []time.Duration{0, 30 * time.Second} {
		if _, err := measure(t, Query{Address: address, PromQL: "1", MaxAge: age}, now); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2m0s", "30s"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARangeGivesOneNumber(t *testing.T) {
	address := answers(t, says(200, data("matrix", `[{"metric":{},"values":[[10,"1"],[11,"4"],[12,"1"],[13,"2"]]}]`)))
	for reduce, want := range map[Reduction]float64{Last: 2, Min: 1, Max: 4, Mean: 2} {
		s, err := measure(t, Query{Address: address, PromQL: "up", Range: &Range{Over: 3 * time.Second, Step: time.Second, Reduce: reduce}}, now)
		if err != nil || s.Value != want || s.At.Unix() != 13 {
			t.Errorf("%s: %+v, %v", reduce, s, err)
		}
	}
	for name, test := range map[string]struct {
		result string
		want   source.Reason
	}{
		"a gap":      {`[{"metric":{},"values":[[10,"1"],[12,"1"],[13,"2"]]}]`, source.Partial},
		"NaN in it":  {`[{"metric":{},"values":[[10,"1"],[11,"NaN"],[12,"1"],[13,"2"]]}]`, source.NotANumber},
		"nothing":    {`[]`, source.NoData},
		"no points":  {`[{"metric":{},"values":[]}]`, source.NoData},
		"two series": {`[{"metric":{"a":"b"},"values":[[10,"1"]]},{"metric":{},"values":[[10,"1"]]}]`, source.SeveralSeries},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reduce := range []Reduction{Min, Max, Mean} {
				q := Query{Address: answers(t, says(200, data("matrix", test.result))), PromQL: "up", Range: &Range{Over: 3 * time.Second, Step: time.Second, Reduce: reduce}}
				s, err := measure(t, q, now)
				reason(t, s, err, test.want)
			}
		})
	}
}

func TestQueriesThatAreNeverSentNameTheField(t *testing.T) {
	fine := Query{Address: "http://prometheus:9090", PromQL: "up"}
	for name, test := range map[string]struct {
		change func(*Query)
		want   string
	}{
		"no address":               {func(q *Query) { q.Address = "" }, "address: "},
		"a password":               {func(q *Query) { q.Address = "http://a:b@c" }, "address: "},
		"no query":                 {func(q *Query) { q.PromQL = "" }, "needs exactly one of query and counters"},
		"both":                     {func(q *Query) { q.Counters = &Counters{Requests: "a"} }, "needs exactly one of query and counters"},
		"a query that is none":     {func(q *Query) { q.PromQL = "(" }, "query: is not PromQL"},
		"no counters":              {func(q *Query) { q.PromQL, q.Counters = "", &Counters{Failures: "a"} }, "counters: need requests or latency"},
		"a rate of counters":       {func(q *Query) { q.PromQL, q.Counters = "", &Counters{Requests: "rate(a[1m])"} }, "counters.requests: is more than a selector"},
		"failures that are a rate": {func(q *Query) { q.PromQL, q.Counters = "", &Counters{Requests: "a", Failures: "rate(a[1m])"} }, "counters.failures: is more"},
		"a range of counters":      {func(q *Query) { q.PromQL, q.Counters, q.Range = "", &Counters{Requests: "a"}, &Range{} }, "range: is for a query"},
		"a range without steps":    {func(q *Query) { q.Range = &Range{Over: time.Minute, Reduce: Max} }, "range.step: "},
		"a range of many steps":    {func(q *Query) { q.Range = &Range{Over: time.Hour, Step: time.Second, Reduce: Max} }, "range.over: "},
		"a range without a number": {func(q *Query) { q.Range = &Range{Over: time.Minute, Step: time.Second} }, "range.reduce: "},
	} {
		t.Run(name, func(t *testing.T) {
			q := fine
			test.change(&q)
			if _, err := New(caller(), token{}, q); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
