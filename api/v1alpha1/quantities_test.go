// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsAreThoseOfGatewayAPI(t *testing.T) {
	for in, want := range map[Duration]time.Duration{"0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "99999h": 99999 * time.Hour, "5ms": 5 * time.Millisecond} {
		if got, err := in.Parse(); err != nil || got != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, bad := range []Duration{"", "soon", "-5s", "10", "99999999999h"} {
		if _, err := bad.Parse(); err == nil || !strings.Contains(err.Error(), "write whole numbers with h, m, s or ms") {
			t.Errorf("%q: %v", string(bad), err)
		}
	}
}

func TestSharesAreBetweenNothingAndAll(t *testing.T) {
	for in, want := range map[Percent]float64{"0%": 0, "1%": 0.01, "99.5%": 0.995, "100%": 1} {
		if got, err := in.Fraction(true, 100); err != nil || got != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	if got, err := PercentagePoints("0.5pp").Fraction(false, 0.5); err != nil || got != 0.005 {
		t.Errorf("0.5pp: %v %v", got, err)
	}
	for _, bad := range []Percent{"", "1", "%", "101%", "-1%", "NaN%", "Inf%", "1pp"} {
		if _, err := bad.Fraction(true, 100); err == nil {
			t.Errorf("%q is accepted", string(bad))
		}
	}
}

func TestASharePastItsBoundsIsRefusedInItsOwnUnit(t *testing.T) {
	for _, tt := range []struct {
		share interface {
			Fraction(zero bool, most float64) (float64, error)
		}
		zero bool
		want string
	}{
		{Percent("50%"), false, ""},
		{Percent("0%"), true, ""},
		{Percent("0%"), false, `"0%" is out of range: write more than 0% and at most 50%`},
		{Percent("50.0001%"), true, `"50.0001%" is out of range: write 0% to 50%`},
		{PercentagePoints("60pp"), false, `"60pp" is out of range: write more than 0pp and at most 50pp`},
	} {
		got := ""
		if _, err := tt.share.Fraction(tt.zero, 50); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.share, got, tt.want)
		}
	}
}

func FuzzQuantities(f *testing.F) {
	f.Add("1h")
	f.Add("99.5%")
	f.Add("0.5pp")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := Duration(s).Parse(); err == nil && d < 0 {
			t.Errorf("%q is negative: %v", s, d)
		}
		for _, parse := range []func(bool, float64) (float64, error){Percent(s).Fraction, PercentagePoints(s).Fraction} {
			if x, err := parse(true, 100); err == nil && !(x >= 0 && x <= 1) {
				t.Errorf("%q is %v", s, x)
			}
		}
	})
}

func TestDecimalsAreNumbers(t *testing.T) {
	for text, want := range map[Decimal]float64{"0": 0, "-5": -5, "0.99": .99, "123456789012345.123456789": 123456789012345.123456789} {
		if got, err := text.Float(); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []Decimal{"", "x", "NaN", "Inf", "1e999", "1 2"} {
		if got, err := text.Float(); err == nil {
			t.Errorf("%q became %v", text, got)
		}
	}
}
