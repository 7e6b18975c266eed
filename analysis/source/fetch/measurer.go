// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"strconv"
	"time"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
)

// Measurer measures by one call. A source says what is particular to it. It implements
// source.Measurer.
type Measurer struct {
	Caller  *Caller
	Secrets source.Secrets
	// Address is the URL that is called, or one of the same host: credentials go there.
	Address string
	// Keys are the credentials of a call.
	Keys []source.SecretKey
	// Request is the call at a time, with the credentials in the order of Keys.
	Request func(at time.Time, credentials []string) (Request, error)
	// Read finds the measurement in the answer.
	Read func(answer []byte, at time.Time) (source.Sample, error)
}

// Measure calls once. Without its credentials it does not call.
func (m *Measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := m.Caller.Limit(ctx)
	defer cancel()
	credentials, err := source.ReadAll(ctx, m.Secrets, m.Address, m.Keys...)
	if err != nil {
		return source.Sample{}, err
	}
	request, err := m.Request(at, credentials)
	if err != nil {
		return source.Sample{}, err
	}
	if !egress.SameHost(request.URL, m.Address) {
		return source.Sample{}, m.Caller.Missing(egress.ErrURL) // the credentials are for another one
	}
	answer, err := m.Caller.Bytes(ctx, request)
	if err != nil {
		return source.Sample{}, err
	}
	end, err := m.Caller.turns.take(ctx)
	if err != nil {
		return source.Sample{}, m.Caller.Missing(err)
	}
	defer end()
	return m.Read(answer, at)
}

// JSON reads answers of JSON by what finds the measurement in a decoded one. Numbers that
// are decoded into an interface become json.Number.
func JSON[T any](read func(answer T, at time.Time) (source.Sample, error)) func([]byte, time.Time) (source.Sample, error) {
	return func(body []byte, at time.Time) (source.Sample, error) {
		var answer T
		if err := Decode(body, &answer); err != nil {
			return source.Sample{}, err
		}
		return read(answer, at)
	}
}

// Unix writes a time as APIs take it in an address: in seconds.
func Unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
