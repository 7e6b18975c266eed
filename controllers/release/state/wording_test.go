// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"
)

func TestTimesAndDurationsAsUsersWriteThem(t *testing.T) {
	end := time.Date(2026, 1, 5, 3, 4, 5, 0, time.UTC)
	for lasts, want := range map[time.Duration]string{
		time.Hour: "03:04:05 UTC", 23 * time.Hour: "03:04:05 UTC", 24 * time.Hour: "Mon 2026-01-05 03:04 UTC", 72 * time.Hour: "Mon 2026-01-05 03:04 UTC",
	} {
		if got := EndTime(end, lasts); got != want {
			t.Errorf("the end of %v: %s, want %s", lasts, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", 30 * time.Second: "30s", 0: "0s",
		time.Hour + 5*time.Second: "1h0m5s", 500 * time.Millisecond: "500ms",
	} {
		if got := Brief(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
