// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"testing"
	"time"
)

func TestLookupsAreForgottenShortlyAfterTheNextSecondBegins(t *testing.T) {
	second := time.Unix(1000, 0)
	for _, before := range []time.Duration{0, 1, 999_999_999} {
		got := LookupsForgotten(second.Add(before)).Sub(second)
		if got < 1100*time.Millisecond || got > LookupsKept {
			t.Errorf("%s after a second begins: forgotten %s after it, want 1.1 s, since a worker may stand still for 100 ms, to %s", before, got, LookupsKept)
		}
	}
}
