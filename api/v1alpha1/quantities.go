// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time such as "90s" or "1h30m", in the format of
// Gateway API (GEP-2257): up to four pairs of a whole number and a unit of h,
// m, s or ms. It is a string so that one object that slipped past the schema
// can never stop the whole kind from being listed.
//
// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
// +kubebuilder:validation:MaxLength=28
type Duration string

// Parse returns the duration. The error names the value and the format.
func (d Duration) Parse() (time.Duration, error) {
	v, err := time.ParseDuration(string(d))
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a duration: write whole numbers with h, m, s or ms, such as 90s or 1h30m", string(d))
	}
	return v, nil
}

// Percent is a share of a hundred such as "99.5%".
//
// +kubebuilder:validation:Pattern=`^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)%$`
// +kubebuilder:validation:MaxLength=9
type Percent string

// Fraction returns the share between 0 and 1. It has to be at most a number of hundredths, and
// above 0 unless zero is allowed. The error names the value and, in percent, what to write.
func (p Percent) Fraction(zero bool, most float64) (float64, error) {
	return shareWithin(string(p), "%", zero, most)
}

// PercentagePoints is a difference between two percentages such as "0.5pp".
//
// +kubebuilder:validation:Pattern=`^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)pp$`
// +kubebuilder:validation:MaxLength=10
type PercentagePoints string

// Fraction returns the difference between 0 and 1. It has to be at most a number of points, and
// above 0 unless zero is allowed. The error names the value and, in points, what to write.
func (p PercentagePoints) Fraction(zero bool, most float64) (float64, error) {
	return shareWithin(string(p), "pp", zero, most)
}

func shareWithin(s, unit string, zero bool, most float64) (float64, error) {
	v, err := parseShare(s, unit)
	switch {
	case err != nil:
		return 0, err
	case zero && v > most/100:
		return 0, fmt.Errorf("%q is out of range: write 0%s to %v%s", s, unit, most, unit)
	case !zero && (v == 0 || v > most/100):
		return 0, fmt.Errorf("%q is out of range: write more than 0%s and at most %v%s", s, unit, most, unit)
	}
	return v, nil
}

func parseShare(s, unit string) (float64, error) {
	number, found := strings.CutSuffix(s, unit)
	v, err := strconv.ParseFloat(number, 64)
	if !found || err != nil || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("%q is not between 0%s and 100%s: write a number followed by %q", s, unit, unit, unit)
	}
	return v / 100, nil
}

// Float returns the number. The error names the value and the format.
func (d Decimal) Float() (float64, error) {
	v, err := strconv.ParseFloat(string(d), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("%q is not a number: write digits with an optional sign and point, such as 0.99", string(d))
	}
	return v, nil
}
