// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"time"
)

// endTime is when something ends that lasts for so long: a time of the day, and the
// date too where that could be of another day than today or tomorrow morning.
func endTime(end time.Time, lasts time.Duration) string {
	if lasts < 24*time.Hour {
		return end.UTC().Format(time.TimeOnly)
	}
	return dateTime(end.UTC())
}

func dateTime(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// brief is a duration as people write it: "10m", and not "10m0s".
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// detail is the present sentence as a part of another one, which names the sted.
func (d *draft) detail() string {
	text := strings.TrimSuffix(d.State.Message, ".")
	if s := d.status.Step; s != nil {
		text = strings.TrimPrefix(text, "Step "+s.Summary+": ")
	}
	return text
}
