// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// MaxSamples is how many Samples, and how many Values, one window can hold.
const MaxSamples = 8

// maxName is the longest name of a metric.
const maxName = 63

// Sample is what a metric that a user named counted for both versions.
type Sample struct {
	// Name is the user's name for the metric, unique among the Samples of a window.
	Name string `json:"name"`
	// Start is when counting began. Zero means that it covers exactly the window
	// that it is in. Otherwise it belongs to the window in which it ended. Samples
	// of one name must not overlap: each event is counted in one of them.
	Start time.Time `json:"start,omitzero"`
	// Canary and Stable are the counts: events, and how many of them were bad in
	// Failures, or a histogram in Latency of which more is worse. A sample that
	// has a histogram is judged by it alone.
	Canary Variant `json:"canary"`
	Stable Variant `json:"stable"`
}

// Value is one measurement of a plain number that a user named, such as the
// depth of the canary's queue.
type Value struct {
	// Name is the user's name for the metric, unique among the Values of a window.
	Name string `json:"name"`
	// Value is the number; nil or NaN when the measurement was due and gave none.
	Value *float64 `json:"value"`
}

// KnownValue is a Value, and since when it is known.
type KnownValue struct {
	At    time.Time
	Value Value
}

// Get returns the number; false when the measurement gave none. Infinity is
// none either: it is what a division by zero looks like.
func (v Value) Get() (float64, bool) {
	if v.Value == nil || math.IsNaN(*v.Value) || math.IsInf(*v.Value, 0) {
		return 0, false
	}
	return *v.Value, true
}

// Sample finds a sample by its name; nil when the window has none.
func (w *Window) Sample(name string) *Sample {
	for i := range w.Samples {
		if w.Samples[i].Name == name {
			return &w.Samples[i]
		}
	}
	return nil
}

// Value finds a value by its name; nil when the window has none.
func (w *Window) Value(name string) *Value {
	for i := range w.Values {
		if w.Values[i].Name == name {
			return &w.Values[i]
		}
	}
	return nil
}

func (w *Window) validateSamples() error {
	if len(w.Samples) > MaxSamples {
		return fmt.Errorf("samples: %d; give at most %d", len(w.Samples), MaxSamples)
	}
	for i, s := range w.Samples {
		if w.Sample(s.Name) != &w.Samples[i] {
			return fmt.Errorf("samples[%d].name: %q is there twice; give each metric once", i, s.Name)
		}
		if err := s.validate(w.End); err != nil {
			return fmt.Errorf("samples[%d].%w", i, err)
		}
	}
	return nil
}

func (s *Sample) validate(end time.Time) error {
	switch {
	case !validName(s.Name):
		return errName
	case !s.Start.IsZero() && (s.Start.Unix() < 1 || !s.Start.Before(end)):
		return errors.New("start: not before the end of the window; give the time at which counting began")
	}
	if err := s.Canary.Validate(); err != nil {
		return fmt.Errorf("canary.%w", err)
	}
	if err := s.Stable.Validate(); err != nil {
		return fmt.Errorf("stable.%w", err)
	}
	return nil
}

func (w *Window) validateValues() error {
	if len(w.Values) > MaxSamples {
		return fmt.Errorf("values: %d; give at most %d", len(w.Values), MaxSamples)
	}
	for i, v := range w.Values {
		if !validName(v.Name) {
			return fmt.Errorf("values[%d].%w", i, errName)
		}
		if w.Value(v.Name) != &w.Values[i] {
			return fmt.Errorf("values[%d].name: %q is there twice; give each metric once", i, v.Name)
		}
	}
	return nil
}

var errName = fmt.Errorf("name: empty or too long; give 1 to %d characters", maxName)

func validName(name string) bool { return name != "" && len(name) <= maxName }
