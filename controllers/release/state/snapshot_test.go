// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"
)

func TestATimeOfTheStatusIsRoundedUp(t *testing.T) {
	at := time.Date(2030, 1, 2, 12, 0, 0, 1500, time.UTC)
	s := Snapshot{Observation: Observation{Now: at}}
	if got := s.Micro(); !got.Time.Equal(at.Truncate(time.Microsecond).Add(time.Microsecond)) {
		t.Errorf("%v is written as %v", at, got)
	}
}
