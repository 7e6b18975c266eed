// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// officeHours is a schedule as users write them.
func officeHours() *v1alpha1.Schedule {
	s := windows("Europe/Berlin", window("0 9 * * MON-THU", "8h"), window("0 9 * * FRI", "4h"))
	s.Freezes = []v1alpha1.FreezeWindow{freezeWindow("0 0 20 12 *", "336h", "end of year")}
	return s
}

func BenchmarkAt(b *testing.B) {
	alternating := windows("UTC", window("0 8 * * *", "12h"), window("0 20 * * *", "12h"))
	for _, bench := range []struct {
		name     string
		schedule *v1alpha1.Schedule
		at       string
	}{
		{"without a schedule", nil, "2026-11-20T12:00:00Z"},
		{"in a window", officeHours(), "2026-11-20T09:00:00Z"},
		{"outside of the windows", officeHours(), "2026-11-20T18:00:00Z"},
		{"in a freeze", officeHours(), "2026-12-24T12:00:00Z"},
		{"always inside, five years searched", windows("Europe/Berlin", window("0 0 * * *", "25h")), "2026-11-20T12:00:00Z"},
		{"two that take turns, five years searched", alternating, "2026-11-20T12:00:00Z"},
		{"the worst, cut short", freezes(freezeWindow("*/2 * * * *", "1m", ""), freezeWindow("1-59/2 * * * *", "1m", "")), "2026-11-20T12:00:00Z"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c, at := parse(b, bench.schedule), instant(b, bench.at)
			b.ReportAllocs()
			for b.Loop() {
				c.At(at)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	utc := officeHours()
	utc.TimeZone = ""
	for name, s := range map[string]*v1alpha1.Schedule{"UTC": utc, "Europe/Berlin": officeHours()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parse(b, s)
			}
		})
	}
}

// The most that a schedule can cost: sixteen windows and sixteen freezes, of which
// the first two have to be followed and the others are hard to find.
func BenchmarkAtWorst(b *testing.B) {
	const even, odd = "*/2 * * * *", "1-59/2 * * * *"
	for _, bench := range []struct {
		name, second string
		freezes      [2]string
		others       string
	}{
		{"frozen every minute, others never come", odd, [2]string{even, odd}, "59 23 30 2 *"},
		{"frozen every minute, others on leap days", odd, [2]string{even, odd}, "59 23 29 2 *"},
		{"frozen when open, others never come", even, [2]string{even, even}, "59 23 30 2 *"},
		{"frozen when open, others on leap days", even, [2]string{even, even}, "59 23 29 2 *"},
		{"open every minute", odd, [2]string{"0 0 1 1 *", "0 0 1 1 *"}, odd},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := &v1alpha1.Schedule{TimeZone: "Europe/Berlin", Windows: []v1alpha1.Window{window(even, "1m"), window(bench.second, "1m")}}
			for _, start := range bench.freezes {
				s.Freezes = append(s.Freezes, freezeWindow(start, "1m", ""))
			}
			for range 14 {
				s.Windows = append(s.Windows, window(bench.others, "1m"))
				s.Freezes = append(s.Freezes, freezeWindow("59 23 29 2 *", "1m", ""))
			}
			c, at := parse(b, s), instant(b, "2026-11-20T12:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				c.At(at)
			}
		})
	}
}
