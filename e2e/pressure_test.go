// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// pressure is for how long something on this machine, and everything, waited for a processor.
type pressure struct {
	at         time.Time
	some, full time.Duration
}

var totals = regexp.MustCompile(`(?m)^(some|full) .*total=(\d+)$`)

// readPressure reads the kernel's account; all zero where it keeps none.
func readPressure() pressure {
	content, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return pressure{at: time.Now()}
	}
	return parsePressure(time.Now(), string(content))
}

func parsePressure(now time.Time, content string) pressure {
	p := pressure{at: now}
	for _, match := range totals.FindAllStringSubmatch(content, -1) {
		microseconds, err := strconv.ParseInt(match[2], 10, 64)
		if err != nil {
			continue
		}
		if match[1] == "some" {
			p.some = time.Duration(microseconds) * time.Microsecond
		} else {
			p.full = time.Duration(microseconds) * time.Microsecond
		}
	}
	return p
}

// since says which share of the time was waited.
func (p pressure) since(later pressure) string {
	took := later.at.Sub(p.at)
	return fmt.Sprintf("in %s something waited for a processor %.0f %% of the time, and everything %.0f %%",
		took.Round(time.Second), 100*float64(later.some-p.some)/float64(took), 100*float64(later.full-p.full)/float64(took))
}

func TestPressureIsRead(t *testing.T) {
	const before = "some avg10=1.00 avg60=1.00 avg300=1.00 total=1000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	const after = "some avg10=1.00 avg60=1.00 avg300=1.00 total=6000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
	got := parsePressure(time.Unix(0, 0), before).since(parsePressure(time.Unix(10, 0), after))
	if want := "in 10s something waited for a processor 50 % of the time, and everything 10 %"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
