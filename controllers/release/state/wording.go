// SPDX-License-Identifier: Apache-2.0

package state

import (
	"strings"
	"time"
)

// EndTime is when something ends that lasts for so long: a time of the day, and the
// date too where that could be of another day than today or tomorrow morning.
func EndTime(end time.Time, lasts time.Duration) string {
	if lasts < 24*time.Hour {
		return end.UTC().Format(time.TimeOnly + " MST")
	}
	return DateTime(end.UTC())
}

// DateTime is a time with its day and its zone.
func DateTime(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// Brief is a duration as users write it: "10m", and not "10m0s".
func Brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
