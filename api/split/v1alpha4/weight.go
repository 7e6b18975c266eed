// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/json"
)

// maxQuoted is the most bytes of a wrong value that a message repeats.
const maxQuoted = 40

// Bounds of the text of a weight. The time to read a quantity grows with the value of
// its exponent: without a bound, one object would stop the whole kind from being listed.
const (
	maxWeightBytes    = 20
	maxExponentDigits = 2
)

// UnmarshalJSON reads a backend as any version of the specification writes it: a
// mesh's own schema takes fractions, and in v1alpha1 quantities, for weights. Whole
// numbers are read in each of these forms, such as 10, 10.0, "10" and "1k".
//
// Invalid says what can't be read. Decoding itself never fails, so that one
// bad object can't stop the whole kind from being listed.
func (b *Backend) UnmarshalJSON(text []byte) error {
	*b = Backend{}
	var raw struct {
		Service any                `json:"service"`
		Weight  stdjson.RawMessage `json:"weight"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		b.Invalid = "spec.backends: a backend is an object with service and weight"
		return nil //nolint:nilerr // reported in Invalid: an error would stop the list
	}
	service, ok := raw.Service.(string)
	if raw.Service != nil && !ok {
		b.Invalid = fmt.Sprintf("spec.backends: the service %.*q is not a string; write the name of a Service", maxQuoted, fmt.Sprint(raw.Service))
		return nil
	}
	b.Service = service
	said, weight, err := readWeight(raw.Weight)
	if err != nil {
		b.Invalid = fmt.Sprintf("spec.backends: the weight %.*q of %q %s; write a whole number from 0 to %d",
			maxQuoted, said, service, err, math.MaxInt32)
		return nil
	}
	b.Weight = weight
	return nil
}

// readWeight reads the JSON of a weight, and returns what a message may call it.
func readWeight(text stdjson.RawMessage) (said string, weight int32, err error) {
	if len(text) == 0 {
		return "", 0, nil
	}
	said = string(text)
	if text[0] != '"' {
		if err := shortEnough(said); err != nil {
			return said, 0, err
		}
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return said, 0, errors.New("is not a number")
	}
	if s, ok := value.(string); ok {
		said = s
	}
	weight, err = wholeWeight(value)
	return said, weight, err
}

// shortEnough refuses the text of a number that may take long to read.
func shortEnough(text string) error {
	if len(text) > maxWeightBytes {
		return errors.New("is too long")
	}
	unit := strings.TrimLeft(text, "+-.0123456789")
	if strings.IndexAny(unit, "eE") == 0 && len(strings.TrimLeft(unit[1:], "+-")) > maxExponentDigits {
		return errors.New("has an exponent that is too large")
	}
	return nil
}

// wholeWeight reads a number, or a quantity, that is whole. Absent, it is 0.
func wholeWeight(value any) (int32, error) {
	switch v := value.(type) {
	case nil:
		return 0, nil
	case int64:
		return inRange(float64(v))
	case float64:
		return inRange(v)
	case string:
		if err := shortEnough(v); err != nil {
			return 0, err
		}
		q, err := resource.ParseQuantity(v)
		if err != nil {
			return 0, errors.New("is not a number")
		}
		return inRange(q.AsFloat64Slow())
	default:
		return 0, errors.New("is not a number")
	}
}

// inRange distinguishes whole numbers from others: a float64 holds each of them exactly up
// to far beyond the largest weight.
func inRange(f float64) (int32, error) {
	switch {
	case f != math.Trunc(f):
		return 0, errors.New("is not whole")
	case f < math.MinInt32 || f > math.MaxInt32:
		return 0, errors.New("is too large")
	default:
		return int32(f), nil
	}
}
