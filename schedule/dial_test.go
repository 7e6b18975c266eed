// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"
)

// Two centuries, forwards and backwards: a stretch contains the moment and has the
// offset that the zone has then, and what is reached and what comes first agree.
func TestADialIsRightAtAnyTime(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Scoresbysund", "Pacific/Apia", "America/Juneau", "America/Metlakatla", "Asia/Manila"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		d := dial{zone: zone}
		begin, end := instant(t, "1840-01-01T00:00:00Z").Unix(), instant(t, "2060-01-01T00:00:00Z").Unix()
		for second := instant(t, "2018-01-01T00:00:00Z").Unix(); second < end; second += 3600 {
			d.check(t, second)
		}
		for second := end; second > begin; second -= 17 * 3600 {
			d.check(t, second)
		}
		if t.Failed() {
			return
		}
	}
}

func (d *dial) check(t *testing.T, second int64) {
	t.Helper()
	if d.turn(second); second < d.from || second >= d.until {
		t.Fatalf("%s: %d is not in [%d, %d)", d.zone, second, d.from, d.until)
	}
	if _, want := time.Unix(second, 0).In(d.zone).Zone(); d.offset != int64(want) {
		t.Fatalf("%s: at %d the offset is %d, want %d", d.zone, second, d.offset, want)
	}
	reached := d.reached(time.Unix(second, 0))
	if at := d.first(reached); at.Unix() > second {
		t.Fatalf("%s: at %d minute %d is said to be reached, and to come first at %d", d.zone, second, reached, at.Unix())
	}
	if at := d.first(reached + 1); at.Unix() <= second {
		t.Fatalf("%s: at %d minute %d is the last that is reached, but the next one came at %d", d.zone, second, reached, at.Unix())
	}
}
