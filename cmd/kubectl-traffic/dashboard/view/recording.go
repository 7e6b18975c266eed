// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Recording is a release over time, for charts and their tables.
type Recording struct {
	Revision string  `json:"revision"`
	Points   []Point `json:"points"`
	// Tolerance of the difference, in percentage points, and the evidence that rolls back,
	// as they were last.
	Tolerance *float64 `json:"tolerance,omitempty"`
	Threshold *float64 `json:"threshold,omitempty"`
}

// Point is a window of a release.
type Point struct {
	// At is the end of the window in Unix seconds.
	At     float64 `json:"at"`
	Weight int32   `json:"weight"`
	Step   int32   `json:"step"`
	// What the versions answered in the window.
	CanaryRequests int64 `json:"canaryRequests"`
	CanaryFailures int64 `json:"canaryFailures"`
	StableRequests int64 `json:"stableRequests"`
	StableFailures int64 `json:"stableFailures"`
	// Difference of the failure rates of all windows so far, in percentage points, between Low
	// and High with a confidence of 95 %.
	Difference *float64 `json:"difference,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	// CanaryP99 and StableP99 are bounds of the latency in seconds.
	CanaryP99 *float64 `json:"canaryP99,omitempty"`
	StableP99 *float64 `json:"stableP99,omitempty"`
	Evidence  *float64 `json:"evidence,omitempty"`
	Verdict   string   `json:"verdict,omitempty"`
	Action    string   `json:"action,omitempty"`
	// Gap says why windows before this one may be missing, or "".
	Gap string `json:"gap,omitempty"`
}

// line is a line of a recording: see docs/recording.md.
type line struct {
	Release *struct {
		Revision string    `json:"revision"`
		Began    time.Time `json:"began"`
	} `json:"release"`
	Settings *struct {
		Judge struct {
			Tolerance        *float64 `json:"tolerance"`
			MaxFalseRollback *float64 `json:"maxFalseRollback"`
		} `json:"judge"`
	} `json:"settings"`
	T      float64  `json:"t"`
	Weight int32    `json:"weight"`
	Step   int32    `json:"step"`
	Canary *variant `json:"canary"`
	Stable *variant `json:"stable"`
	Judged *struct {
		Verdict  string  `json:"verdict"`
		Action   string  `json:"action"`
		Rollback float64 `json:"rollback"`
	} `json:"judged"`
	Gap string `json:"gap"`
}

// variant is what one version answered.
type variant struct {
	Requests int64 `json:"requests"`
	Failures int64 `json:"failures"`
	Latency  *struct {
		Bounds []float64 `json:"le"`
		Counts []int64   `json:"counts"`
	} `json:"latency"`
}

// maxRecording bounds what a recording may unpack to.
const maxRecording = 16 << 20

// ReadRecording reads a recording as it is stored.
func ReadRecording(stored string) (*Recording, error) {
	packed := base64.NewDecoder(base64.StdEncoding, strings.NewReader(stored))
	text, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack the recording: %w", err)
	}
	all, err := io.ReadAll(io.LimitReader(text, maxRecording))
	if err != nil {
		return nil, fmt.Errorf("unpack the recording: %w", err)
	}
	r := &Recording{Points: []Point{}}
	var began time.Time
	var sum sums
	lines := bufio.NewScanner(bytes.NewReader(all))
	lines.Buffer(nil, maxRecording)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read line %d of the recording: %w", len(r.Points)+1, err)
		}
		if l.Release != nil {
			r.Revision, began = l.Release.Revision, l.Release.Began
		}
		r.note(&l)
		if l.Canary != nil && l.Stable != nil { // else it has only values of metrics
			r.Points = append(r.Points, sum.point(&l, began))
		}
	}
	return r, lines.Err()
}

// note notes the settings of a line, if it has any.
func (r *Recording) note(l *line) {
	if l.Settings == nil {
		return
	}
	r.Tolerance, r.Threshold = nil, nil
	if t := l.Settings.Judge.Tolerance; t != nil {
		r.Tolerance = new(100 * *t)
	}
	if m := l.Settings.Judge.MaxFalseRollback; m != nil && *m > 0 {
		r.Threshold = new(1 / *m)
	}
}

// sums are what the versions answered so far.
type sums struct{ canary, stable variant }

func (s *sums) point(l *line, began time.Time) Point {
	p := Point{
		At: float64(began.Unix()) + l.T, Weight: l.Weight, Step: l.Step, Gap: l.Gap,
		CanaryRequests: l.Canary.Requests, CanaryFailures: l.Canary.Failures, CanaryP99: l.Canary.quantile(0.99),
		StableRequests: l.Stable.Requests, StableFailures: l.Stable.Failures, StableP99: l.Stable.quantile(0.99),
	}
	s.canary.add(l.Canary)
	s.stable.add(l.Stable)
	if s.canary.comparable() && s.stable.comparable() {
		difference, low, high := compare(s.canary, s.stable)
		p.Difference, p.Low, p.High = &difference, &low, &high
	}
	if j := l.Judged; j != nil {
		p.Verdict, p.Action = j.Verdict, j.Action
		if j.Rollback > 0 {
			p.Evidence = &j.Rollback
		}
	}
	return p
}

func (v *variant) add(o *variant) {
	v.Requests += o.Requests
	v.Failures += o.Failures
}

// comparable is whether there is a rate; what a file says that was changed by hand may not be one.
func (v *variant) comparable() bool {
	return v.Requests > 0 && v.Failures >= 0 && v.Failures <= v.Requests
}

// quantile is the least bound within which that share of the requests was answered; nil when
// nothing was timed, or when it lies above all bounds.
func (v *variant) quantile(share float64) *float64 {
	l := v.Latency
	if l == nil || len(l.Counts) == 0 || len(l.Counts) < len(l.Bounds) {
		return nil
	}
	all := l.Counts[len(l.Counts)-1]
	for i, bound := range l.Bounds {
		if all > 0 && float64(l.Counts[i]) >= share*float64(all) {
			return &bound
		}
	}
	return nil
}

// compare is the difference of two failure rates in percentage points with Newcombe's hybrid
// score interval, which is sound for few failures too.
func compare(canary, stable variant) (difference, low, high float64) {
	c, cLow, cHigh := wilson(canary)
	s, sLow, sHigh := wilson(stable)
	d := c - s
	return 100 * d, 100 * (d - math.Hypot(c-cLow, sHigh-s)), 100 * (d + math.Hypot(cHigh-c, s-sLow))
}

// z is the quantile of the normal distribution for an interval of 95 %.
const z = 1.959964

// wilson is a failure rate with its score interval.
func wilson(v variant) (rate, low, high float64) {
	n := float64(v.Requests)
	rate = float64(v.Failures) / n
	middle := (rate + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(rate*(1-rate)/n+z*z/(4*n*n))
	return rate, max(0, middle-half), min(1, middle+half)
}

// RecordingKey is the key of the recording of a release.
func RecordingKey(revision string, began time.Time) string {
	return fmt.Sprintf("%s.%d", revision, began.Unix())
}
