// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"sigs.k8s.io/json"

	"github.com/serin-dev/serin/analysis"
)

// MaxLine is the longest line, in bytes, that is read.
const MaxLine = 1 << 20

// Window is one recorded window.
type Window struct {
	analysis.Window
	// T is the end of the window in seconds since the start, as it was given.
	T float64
	// Step is the index of the step of the release; steps without a number are
	// distinguished by their weights.
	Step int
}

// epoch is where recordings begin. The judge needs times, and any will do.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// line is what a line says. Pointers tell what is missing from what is zero:
// missing data is never good data.
type line struct {
	T       *float64 `json:"t"`
	Seconds *float64 `json:"seconds"`
	Weight  *int32   `json:"weight"`
	Step    *int     `json:"step"`
	Canary  *variant `json:"canary"`
	Stable  *variant `json:"stable"`
}

type variant struct {
	Requests *int64   `json:"requests"`
	Failures *int64   `json:"failures"`
	Latency  *latency `json:"latency"`
}

type latency struct {
	LE     []float64 `json:"le"`
	Counts []int64   `json:"counts"`
}

const (
	// longest is the longest window, in seconds, and farthest how far from the
	// start a recording may reach: three years.
	longest  = 86_400
	farthest = 1e8
	maxStep  = 1000
)

// Read reads all windows. The error names the line and the field.
func Read(in io.Reader) ([]Window, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	var windows []Window
	for lines.Scan() {
		w, err := parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(windows)+1, err)
		}
		if n := len(windows); n > 0 && w.Step < 0 {
			w.Step = windows[n-1].Step
			if w.Weight != windows[n-1].Weight {
				w.Step++
			}
		}
		w.Step = max(w.Step, 0)
		windows = append(windows, w)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: longer than %d bytes; give one window on each line", len(windows)+1, MaxLine)
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", len(windows)+1, err)
	case len(windows) == 0:
		return nil, errors.New("no window; give one on each line")
	}
	return windows, nil
}

// parse reads one line. A window without a step has Step -1.
func parse(text []byte) (Window, error) {
	var l line
	if err := decode(text, &l); err != nil {
		return Window{}, err
	}
	if err := l.complete(); err != nil {
		return Window{}, err
	}
	w := Window{T: *l.T, Step: -1, Window: analysis.Window{
		Start: at(*l.T - *l.Seconds), End: at(*l.T), Weight: *l.Weight,
		Canary: l.Canary.counted(), Stable: l.Stable.counted(),
	}}
	if l.Step != nil {
		w.Step = *l.Step
	}
	return w, w.Validate()
}

// decode refuses fields that are unknown, written in another case, or there twice.
func decode(text []byte, into any) error {
	strict, err := json.UnmarshalStrict(text, into)
	return errors.Join(append(strict, err)...)
}

// complete checks that everything is there and in range that the judge does not
// check itself.
func (l line) complete() error {
	switch {
	case l.T == nil || !(math.Abs(*l.T) <= farthest):
		return fmt.Errorf("t: missing or more than %g; give the end of the window in seconds since the start", float64(farthest))
	case l.Seconds == nil || !(*l.Seconds > 0 && *l.Seconds <= longest):
		return fmt.Errorf("seconds: missing, not above 0 or more than %d; give the length of the window", longest)
	case l.Weight == nil:
		return errors.New("weight: missing; give the canary's share of the requests in percent")
	case l.Step != nil && (*l.Step < 0 || *l.Step > maxStep):
		return fmt.Errorf("step: %d; give the index of the step, from 0 to %d, or leave it out", *l.Step, maxStep)
	}
	if err := l.Canary.complete(); err != nil {
		return fmt.Errorf("canary%w", err)
	}
	if err := l.Stable.complete(); err != nil {
		return fmt.Errorf("stable%w", err)
	}
	return nil
}

func (a *variant) complete() error {
	switch {
	case a == nil:
		return errors.New(": missing; give requests and failures, which may be 0")
	case a.Requests == nil:
		return errors.New(".requests: missing; give a number, which may be 0")
	case a.Failures == nil:
		return errors.New(".failures: missing; give a number, which may be 0")
	}
	return nil
}

func (a *variant) counted() analysis.Variant {
	out := analysis.Variant{Requests: *a.Requests, Failures: *a.Failures}
	if a.Latency != nil {
		out.Latency = &analysis.Histogram{LE: a.Latency.LE, Counts: a.Latency.Counts}
	}
	return out
}

// at is the time of so many seconds, to the nanosecond.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(math.Round(seconds * float64(time.Second))))
}
