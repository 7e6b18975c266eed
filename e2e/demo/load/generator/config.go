// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Bounds of a configuration: the load is limited in rate and time, so that a
// forgotten generator ends by itself.
const (
	maxRate     = 5000
	maxDuration = 24 * time.Hour
	maxTimeout  = time.Minute
)

// Config is the load to make.
type Config struct {
	// Target is the http URL to call.
	Target string
	// Control is the http URL of a server that Serin has nothing to do with, which is called
	// beside the target; "" for none. What fails there is not Serin's fault.
	Control string
	// ProbeEvery is the time between two connections to the target, and to the control, that
	// are opened and ended at once; 0 for none.
	ProbeEvery time.Duration
	// StreamFor is how long the answers take that are read beside; 0 for none.
	StreamFor time.Duration
	// HoldEvery is the time between two requests on one connection that is kept; 0 for none.
	HoldEvery time.Duration
	// Rate is the number of requests per second, 1 to 5000.
	Rate int
	// Duration is how long requests are sent, at most 24 hours.
	Duration time.Duration
	// Timeout is how long an answer may take from the first dial to the last byte.
	Timeout time.Duration
	// FreshPercent is the share of requests, 0 to 100, that use a new connection
	// which is closed after one answer.
	FreshPercent int
	// MinLife and MaxLife bound the number of requests that any other connection
	// is used for; each connection draws a number between them.
	MinLife, MaxLife int
	// MaxInFlight is the number of requests that may wait for an answer. What is
	// due beyond it is not sent and counted in Report.Skipped.
	MaxInFlight int
}

// DefaultConfig calls target 200 times a second for an hour.
func DefaultConfig(target string) Config {
	return Config{
		Target:       target,
		Rate:         200,
		Duration:     time.Hour,
		Timeout:      10 * time.Second,
		FreshPercent: 10,
		MinLife:      30,
		MaxLife:      100,
		MaxInFlight:  2000,
	}
}

// Validate tells what is wrong. Each error names the field and what is allowed.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(isHTTP(c.Target), "target: %q is not an http URL such as http://website", c.Target)
	check(c.Control == "" || isHTTP(c.Control), "control: %q is not an http URL such as http://control", c.Control)
	check(c.Rate >= 1 && c.Rate <= maxRate, "rate: %d is not from 1 to %d requests per second", c.Rate, maxRate)
	check(c.Duration > 0 && c.Duration <= maxDuration, "duration: %s is not above 0s and at most %s", c.Duration, maxDuration)
	check(c.Timeout > 0 && c.Timeout <= maxTimeout, "timeout: %s is not above 0s and at most %s", c.Timeout, maxTimeout)
	check(c.ProbeEvery >= 0 && c.StreamFor >= 0 && c.HoldEvery >= 0, "probe, stream, hold: %s, %s, %s must not be below 0s", c.ProbeEvery, c.StreamFor, c.HoldEvery)
	check(c.FreshPercent >= 0 && c.FreshPercent <= 100, "fresh: %d is not from 0 to 100 percent", c.FreshPercent)
	check(c.MinLife >= 1 && c.MaxLife >= c.MinLife, "life of a connection: %d to %d requests is not a range above 0", c.MinLife, c.MaxLife)
	check(c.MaxInFlight >= 1, "requests in flight: %d must be at least 1", c.MaxInFlight)
	return errors.Join(errs...)
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && u.Host != ""
}
