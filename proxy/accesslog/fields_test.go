// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"strings"
	"testing"
)

func TestALineHasExactlyItsFields(t *testing.T) {
	for n := range 2 * fieldCount {
		line := strings.Repeat("x"+separator, n) + "x" // n+1 fields
		if _, ok := cutFields([]byte(line)); ok != (n+1 == fieldCount) {
			t.Errorf("a line of %d fields is a line: %t; one has %d", n+1, ok, fieldCount)
		}
	}
}
