// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestANoteIsNoLongerThanTheAPITakes(t *testing.T) {
	if got := cut("short"); got != "short" {
		t.Errorf("%q", got)
	}
	for n := range 4 {
		long := strings.Repeat("x", n) + strings.Repeat("é", maxNote)
		got := cut(long)
		if len(got) > maxNote || len(got) < maxNote-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
