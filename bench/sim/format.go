// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String is the rate with its bound.
func (s Share) String() string {
	return percent(s.Rate()) + " (≤ " + percent(s.UpperBound()) + ")"
}

// percent writes a share with the digits that its size deserves.
func percent(share float64) string {
	digits := 0
	if share < .0995 && share > 0 {
		digits = 1
	}
	if share < .00995 && share > 0 {
		digits = 2
	}
	return strconv.FormatFloat(100*share, 'f', digits, 64) + " %"
}

func seconds(d time.Duration) string {
	if d == never {
		return "–"
	}
	return strconv.Itoa(int(d.Seconds())) + " s"
}

func row(page *strings.Builder, cells ...string) {
	page.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func requests(n float64) string {
	if n < 9.95 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
