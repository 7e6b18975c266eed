// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"testing"
	"time"
)

func TestLookupsAreForgottenShortlyAfterTheNextSecondBegins(t *testing.T) {
	second := time.Unix(1000, 0)
	for _, before := range []time.Duration{0, 1, 999_999_999} {
		got := LookupsForgotten(second.Add(before)).Sub(second)
		if got <= time.Second || got > LookupsKept {
			t.Errorf("%s after a second begins: forgotten %s after it, want more than a second and at most %s", before, got, LookupsKept)
		}
	}
}
