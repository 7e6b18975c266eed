// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"strings"
	"testing"
)

func TestOneMinorVersionBetweenTwoPartsIsSupported(t *testing.T) {
	for _, test := range []struct {
		a, b      string
		supported bool
	}{
		{"0.3.0", "0.3.0", true},
		{"0.3.0", "0.3.9", true},
		{"0.3.0", "0.2.7", true},
		{"0.3.0", "0.4.0", true},
		{"v0.3.0", "0.4.0-rc.1", true},
		{"0.3.0", "0.1.9", false},
		{"0.3.0", "0.5.0", false},
		{"0.9.0", "0.10.0", true},
		{"0.9.0", "0.11.0", false},
		{"0.9.0", "1.0.0", false},
		{"1.0.0", "2.0.0", false},
		{"1.2.0", "1.3.0", true},
		{"0.3.0", "", true},
		{"0.3.0", "(devel)", true},
		{"0.3.0", "dev", true},
		{"0.3.0", "v0.0.0-20300102030405-0123456789ab", true},
		{"0.3.0", "v0.0.0-20300102030405-0123456789ab+dirty", true},
		{"0.3.0", "99999999999999999999.0.0", true},
	} {
		for _, pair := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
			got := Refusal(Part{"the operator", pair[0]}, Part{"the proxy", pair[1]})
			if (got == "") != test.supported {
				t.Errorf("%s with %s: %q", pair[0], pair[1], got)
			}
			if got != "" && (!strings.Contains(got, "the operator is of version "+pair[0]) || !strings.Contains(got, "the proxy of version "+pair[1])) {
				t.Error(got)
			}
		}
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add("0.3.0", "0.5.0")
	f.Fuzz(func(t *testing.T, a, b string) {
		one := Refusal(Part{"a", a}, Part{"b", b})
		other := Refusal(Part{"b", b}, Part{"a", a})
		if (one == "") != (other == "") {
			t.Errorf("%q and %q go together in one direction only", a, b)
		}
	})
}
