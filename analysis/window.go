// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"
	"fmt"
	"time"
)

const (
	// MaxCount is the largest count that can be true: the last one up to which a
	// float64, and so a counter that was scraped, is exact.
	MaxCount = 1 << 53

	lastSecond = 1 << 33 // Unix seconds, in the year 2242: nanoseconds still fit an int64
)

// Variant counts what one version answered, either during one window or, in a
// Scrape, since the proxy started. Which answers count is decided by Classify.
type Variant struct {
	// Requests is the number of answers that were a Success or a Failure.
	Requests int64 `json:"requests"`
	// Failures is how many of Requests were a Failure.
	Failures int64 `json:"failures"`
	// Latency is how long the version took to answer; nil when not measured.
	Latency *Histogram `json:"latency,omitempty"`
	// Spread is how the failures were divided between proxies; zero when unknown,
	// and always in a Scrape.
	Spread Spread `json:"spread,omitzero"`
}

// Spread says how much the failures of one version differed between the proxies
// that counted them during one window. Failures that come in clusters differ by
// more than independent ones.
type Spread struct {
	// Proxies is how many of them answered requests.
	Proxies int64 `json:"proxies"`
	// Squares is the sum of failures² / requests over the proxies.
	Squares float64 `json:"squares"`
}

// spread is that of an variant that one proxy counted.
func (a Variant) spread() Spread {
	if a.Requests == 0 {
		return Spread{}
	}
	return Spread{Proxies: 1, Squares: float64(a.Failures) * float64(a.Failures) / float64(a.Requests)}
}

func (s Spread) validate(a Variant) error {
	// k²/n is at most k, so the sum is at most all failures; the slack is for rounding.
	if s.Proxies < 0 || s.Proxies > a.Requests || !(s.Squares >= 0 && s.Squares <= float64(a.Failures)*(1+1e-9)) {
		return fmt.Errorf("spread: %d proxies, squares %v for %d failures; give the sum of failures²/requests over the proxies, or leave it out",
			s.Proxies, s.Squares, a.Failures)
	}
	return nil
}

// Window is what both versions answered in one stretch of time. Windows of one
// target never overlap, and the weight was constant in each.
type Window struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Weight is the share of requests sent to the canary, in percent.
	Weight int32   `json:"weight"`
	Canary Variant `json:"canary"`
	Stable Variant `json:"stable"`
	// Proxies counts what came to Serin's proxies, whichever version it was for: a Failure is
	// what they refused themselves. Zero where there are none, or they do not say it.
	Proxies Variant `json:"proxies,omitzero"`
	// Samples are metrics that users named and that compare the versions; at most
	// MaxSamples. A metric that was not due is not in it.
	Samples []Sample `json:"samples,omitempty"`
	// Values are plain numbers that users named; at most MaxSamples. A metric
	// that was not due is not in it; one that was due and gave no number is, with
	// a Value of nil.
	Values []Value `json:"values,omitempty"`
}

// Validate returns an error that names the field when the variant cannot have been
// counted: negative numbers, more failures than requests, a broken histogram.
func (a Variant) Validate() error {
	switch {
	case a.Requests < 0 || a.Requests > MaxCount:
		return fmt.Errorf("requests: %d is outside 0 to 2^53; give the increase of the counter", a.Requests)
	case a.Failures < 0:
		return fmt.Errorf("failures: %d is negative; give the increase of the counter", a.Failures)
	case a.Failures > a.Requests:
		return fmt.Errorf("failures: %d is more than the %d requests; count each failure as a request too", a.Failures, a.Requests)
	}
	if err := a.Spread.validate(a); err != nil {
		return err
	}
	if a.Latency == nil {
		return nil
	}
	if err := a.Latency.validate(a.Requests); err != nil {
		return fmt.Errorf("latency.%w", err)
	}
	return nil
}

// Validate returns an error that names the field when the window cannot be
// judged.
func (w Window) Validate() error {
	switch {
	case w.Start.Unix() < 1:
		return errors.New("start: missing; give the time at which the window began")
	case !w.End.After(w.Start):
		return errors.New("end: not after start; give the time at which the window ended")
	case w.End.Unix() > lastSecond:
		return errors.New("end: more than a century ahead; give the time at which the window ended")
	case w.Weight < 0 || w.Weight > 100:
		return fmt.Errorf("weight: %d is outside 0 to 100; give percent", w.Weight)
	}
	if err := w.Canary.Validate(); err != nil {
		return fmt.Errorf("canary.%w", err)
	}
	if err := w.Stable.Validate(); err != nil {
		return fmt.Errorf("stable.%w", err)
	}
	if err := w.Proxies.Validate(); err != nil {
		return fmt.Errorf("proxies.%w", err)
	}
	if err := w.validateSamples(); err != nil {
		return err
	}
	return w.validateValues()
}

// Increase is what a counted since prev was read from the same series; false
// when it cannot be the same series, because a counter went backwards.
func (a Variant) Increase(prev Variant) (Variant, bool) {
	d := Variant{Requests: a.Requests - prev.Requests, Failures: a.Failures - prev.Failures}
	d.Spread = d.spread()
	if prev.Latency == nil && prev.Requests > 0 {
		// What was counted before the histogram began is unknown.
		return d, d.Validate() == nil
	}
	var ok bool
	if d.Latency, ok = a.Latency.increase(prev.Latency); !ok {
		return Variant{}, false
	}
	return d, d.Validate() == nil
}

// Plus adds two variants. The sum has a latency only if every variant that answered
// requests has one with the same bounds: half a histogram would be biased.
func (a Variant) Plus(b Variant) Variant {
	sum := Variant{Requests: a.Requests + b.Requests, Failures: a.Failures + b.Failures}
	sum.Spread = Spread{Proxies: a.Spread.Proxies + b.Spread.Proxies, Squares: a.Spread.Squares + b.Spread.Squares}
	switch {
	case a.Latency == nil && a.Requests == 0:
		sum.Latency = b.Latency
	case b.Latency == nil && b.Requests == 0:
		sum.Latency = a.Latency
	case a.Latency != nil && b.Latency != nil:
		sum.Latency = a.Latency.plus(b.Latency)
	}
	return sum
}
