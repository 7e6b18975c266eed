// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"math"
	"time"

	"github.com/serin-dev/serin/analysis"
)

// Measurer measures one metric of one release. It may be called again and again, by
// one goroutine at a time.
type Measurer interface {
	// Measure returns the metric as it is at the given time, which is the present. It
	// returns soon after ctx ends. Its errors are MissingErrors.
	Measure(ctx context.Context, at time.Time) (Sample, error)
}

// Sample is one measurement.
type Sample struct {
	// At is the time that the measurement is about, as far as the place of measurement
	// tells; otherwise the time at which it was asked.
	At time.Time
	// Value is the number, never NaN and never infinite. It means nothing where
	// Counters is set.
	Value float64
	// Counters are what both versions have counted so far, for metrics that are
	// compared; nil for a plain number.
	Counters *analysis.Scrape
}

// Reason says in one CamelCase word why there is no measurement.
type Reason string

const (
	// NoData means that the answer holds nothing: that is not zero.
	NoData Reason = "NoData"
	// NotANumber means NaN, an infinity, or something that is no number at all.
	NotANumber Reason = "NotANumber"
	// SeveralSeries means that there is more than one number and none of them is the one.
	SeveralSeries Reason = "SeveralSeries"
	// Partial means that the place of measurement says itself that something is missing.
	Partial Reason = "Partial"
	// Stale means that the newest number is too old.
	Stale Reason = "Stale"
	// Timeout means that there was no answer in time.
	Timeout Reason = "Timeout"
	// Unreachable means that there was no answer for another reason.
	Unreachable Reason = "Unreachable"
	// Refused means that the operator's configuration does not let the address be called.
	Refused Reason = "Refused"
	// Rejected means that the query is wrong or not allowed; asking again won't help.
	Rejected Reason = "Rejected"
	// Unavailable means that the place of measurement is in trouble or overloaded.
	Unavailable Reason = "Unavailable"
	// TooLong means that the answer is longer than 1 MiB.
	TooLong Reason = "TooLong"
	// Malformed means that the answer is not what the protocol promises.
	Malformed Reason = "Malformed"
	// Credentials means that a Secret is missing or may not be read.
	Credentials Reason = "Credentials"
	// Pending means that the measurement takes longer than one call, as a Job does.
	Pending Reason = "Pending"
)

// MaxMessage is how many bytes the Message of a MissingError has at most.
const MaxMessage = 256

// MissingError is a measurement that could not be made.
type MissingError struct {
	Reason Reason
	// Message is for users, in words of Serin's own.
	Message string
}

// Error returns the message, or the reason where there is none.
func (m *MissingError) Error() string {
	if m.Message == "" {
		return string(m.Reason)
	}
	return m.Message
}

// Finite returns the value as a Sample's, or the MissingError that says what it is instead.
func Finite(at time.Time, value float64) (Sample, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return Sample{}, &MissingError{Reason: NotANumber, Message: "the answer is NaN or infinite, as a rate without any requests is"}
	}
	return Sample{At: at, Value: value}, nil
}

// Secrets reads credentials in the namespace of one release.
type Secrets interface {
	// Secret returns the value of a key of a Secret, never empty, if it may be sent to the
	// URL. Its errors are MissingErrors.
	Secret(ctx context.Context, of SecretKey, url string) (string, error)
}

// SecretKey names a key of a Secret in the namespace of the release.
type SecretKey struct {
	Name, Key string
}

// Read returns the value to send to a URL; "" for the zero SecretKey.
func (k SecretKey) Read(ctx context.Context, secrets Secrets, url string) (string, error) {
	if k == (SecretKey{}) {
		return "", nil
	}
	return secrets.Secret(ctx, k, url)
}

// ReadAll returns the values of several keys to send to a URL, in their order.
func ReadAll(ctx context.Context, secrets Secrets, url string, keys ...SecretKey) ([]string, error) {
	values := make([]string, len(keys))
	for i, k := range keys {
		var err error
		if values[i], err = k.Read(ctx, secrets, url); err != nil {
			return nil, err
		}
	}
	return values, nil
}
