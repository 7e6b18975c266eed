// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Measurer measures one Query.
type Measurer struct {
	caller  *fetch.Caller
	secrets source.Secrets
	query   Query
	text    compiled
	series  tracker
}

// New makes a Measurer. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (*Measurer, error) {
	text, err := q.compile()
	if err != nil {
		return nil, err
	}
	return &Measurer{caller: caller, secrets: secrets, query: q, text: text}, nil
}

// Measure asks the server.
func (m *Measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := m.caller.Limit(ctx)
	defer cancel()
	client, done := m.caller.Client()
	defer done()
	server, err := m.connect(ctx, client)
	if err != nil {
		return source.Sample{}, err
	}
	switch {
	case m.query.Counters != nil:
		return m.counters(ctx, server, at)
	case m.query.Range != nil:
		return m.overRange(ctx, server, at)
	default:
		return m.instant(ctx, server, at)
	}
}

// connect makes the official client. That costs little: connections belong to the
// transport below it.
func (m *Measurer) connect(ctx context.Context, client *http.Client) (promv1.API, error) {
	token, err := m.query.Bearer.Read(ctx, m.secrets, m.query.Address)
	if err != nil {
		return nil, err
	}
	client.Transport = headers{next: client.Transport, token: token, userAgent: m.caller.UserAgent}
	connection, err := api.NewClient(api.Config{Address: m.query.Address, Client: client})
	if err != nil {
		return nil, &source.MissingError{Reason: source.Refused, Message: "address: is not a URL; correct it"}
	}
	return promv1.NewAPI(connection), nil
}

// headers adds what the official client has no setting for.
type headers struct {
	next             http.RoundTripper
	token, userAgent string
}

func (h headers) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", h.userAgent)
	if h.token != "" {
		request.Header.Set("Authorization", "Bearer "+h.token)
	}
	return h.next.RoundTrip(request)
}

func (m *Measurer) instant(ctx context.Context, server promv1.API, at time.Time) (source.Sample, error) {
	answer, warnings, infos, err := server.Query(ctx, m.text.number, at, promv1.WithLookbackDelta(m.query.maxAge()))
	if err := m.check(err, warnings, infos); err != nil {
		return source.Sample{}, err
	}
	switch v := answer.(type) {
	case *model.Scalar:
		return source.Finite(v.Timestamp.Time(), float64(v.Value))
	case model.Vector:
		switch {
		case len(v) > 1:
			return source.Sample{}, source.Several(len(v))
		case len(v) == 0:
			return source.Sample{}, source.Empty()
		case v[0] == nil || v[0].Histogram != nil:
			return source.Sample{}, source.Wrong("is a histogram; use a function that turns it into a number")
		}
		return source.Finite(v[0].Timestamp.Time(), float64(v[0].Value))
	default:
		return source.Sample{}, source.Wrong("is neither a scalar nor a vector")
	}
}

func (m *Measurer) overRange(ctx context.Context, server promv1.API, at time.Time) (source.Sample, error) {
	r := m.query.Range
	answer, warnings, infos, err := server.QueryRange(ctx, m.text.number,
		promv1.Range{Start: at.Add(-r.Over), End: at, Step: r.Step}, promv1.WithLookbackDelta(m.query.maxAge()))
	if err := m.check(err, warnings, infos); err != nil {
		return source.Sample{}, err
	}
	matrix, ok := answer.(model.Matrix)
	switch {
	case !ok:
		return source.Sample{}, source.Wrong("is not a range")
	case len(matrix) > 1:
		return source.Sample{}, source.Several(len(matrix))
	case len(matrix) == 0 || matrix[0] == nil || len(matrix[0].Values) == 0:
		return source.Sample{}, source.Empty()
	}
	points := matrix[0].Values
	if want := int(r.Over/r.Step) + 1; len(points) < want {
		return source.Sample{}, &source.MissingError{Reason: source.Partial, Message: fmt.Sprintf("%d of %d points of the range are there", len(points), want)}
	}
	return source.Finite(points[len(points)-1].Timestamp.Time(), r.Reduce.of(points))
}

// of is NaN as soon as one of the points is: min and max of Go are so, and a sum is.
func (r Reduction) of(points []model.SamplePair) float64 {
	first := float64(points[0].Value)
	lowest, highest, sum := first, first, 0.0
	for _, p := range points {
		v := float64(p.Value)
		lowest, highest, sum = min(lowest, v), max(highest, v), sum+v
	}
	switch r {
	case Min:
		return lowest
	case Max:
		return highest
	case Mean:
		return sum / float64(len(points))
	default:
		return float64(points[len(points)-1].Value)
	}
}

// check turns what the client says apart from the answer into a Missing. A warning means
// that the answer may be incomplete: that some of several servers did not answer, for
// instance. An info is advice about the query, and changes nothing.
func (m *Measurer) check(err error, warnings promv1.Warnings, _ promv1.Infos) error {
	if err != nil {
		return m.missing(err)
	}
	if len(warnings) > 0 {
		return &source.MissingError{Reason: source.Partial, Message: fmt.Sprintf("the server gave %d warnings: its answer may be incomplete", len(warnings))}
	}
	return nil
}

// missing leaves out what the server said.
func (m *Measurer) missing(err error) error {
	var answered *promv1.Error
	if !errors.As(err, &answered) {
		return m.caller.Missing(err)
	}
	switch answered.Type {
	case promv1.ErrBadData, promv1.ErrExec:
		return &source.MissingError{Reason: source.Rejected, Message: "the server does not accept the query; try it there"}
	case promv1.ErrTimeout, promv1.ErrCanceled:
		return &source.MissingError{Reason: source.Timeout, Message: "the server gave up: the query takes too long"}
	case promv1.ErrServer:
		return &source.MissingError{Reason: source.Unavailable, Message: "the server reports an error of its own"}
	case promv1.ErrClient:
		return &source.MissingError{Reason: source.Rejected, Message: "the server does not accept the request; check the address and the credentials"}
	default:
		return source.Wrong("is not in the format of Prometheus, or is a redirect; write the final address of the server")
	}
}
