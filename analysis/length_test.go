// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"
	"time"
)

func TestTheLengthOfAWindowIsBounded(t *testing.T) {
	for length, want := range map[time.Duration]string{
		time.Second:            "",
		WindowLength:           "",
		10 * time.Second:       "",
		999 * time.Millisecond: "999ms is outside 1s to 10s; give a duration such as 5s",
		0:                      "0s is outside 1s to 10s; give a duration such as 5s",
		-time.Second:           "-1s is outside 1s to 10s; give a duration such as 5s",
		10*time.Second + 1:     "10.000000001s is outside 1s to 10s; give a duration such as 5s",
	} {
		got := ""
		if err := ValidateWindowLength(length); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", length, got, want)
		}
	}
}
