// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"math"
	"reflect"

	"github.com/serin-dev/serin/analysis"
)

// shrink makes the older half of the lines about half as many, by merging two at a time.
// The rest stays exact: its first line gets the state that the operator had there. It reports
// whether there was anything to shrink.
func (r *Recorder) shrink() bool {
	n := max((len(r.lines)+1)/2, r.from)
	if n >= len(r.lines) {
		return false
	}
	for ; r.from < n; r.from++ {
		if _, _, err := r.base.Next(&r.lines[r.from]); err != nil {
			panic(err) // it was judged when it was added
		}
	}
	older := thinned(r.lines[:n])
	head := r.lines[n]
	if err := r.base.enter(&head); err != nil {
		panic(err) // as above
	}
	head.Resume = text(r.base.State)
	r.lines = append(append(older, head), r.lines[n+1:]...)
	r.from = len(older)
	return true
}

// thinned merges the lines two by two. Where hardly any can be merged, because each belongs
// to another step, the oldest are left out.
func thinned(lines []Line) []Line {
	var out []Line
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if i+1 < len(lines) {
			if sum, ok := merged(&l, &lines[i+1]); ok {
				l = sum
				i++
			}
		}
		out = append(out, l)
	}
	if 4*len(out) > 3*len(lines) {
		out = out[(len(out)+1)/2:]
		if len(out) > 0 {
			out[0].Gap, out[0].Resume = GapLeftOut, ""
		}
	}
	return out
}

// merged is the sum of two lines; false when they don't belong together.
func merged(a, b *Line) (Line, bool) {
	if a.OnlyValues() || b.OnlyValues() || !touch(a, b) || !same(a.Settings, b.Settings) || b.Gap != "" {
		return Line{}, false
	}
	first, second := a.Window(epoch), b.Window(epoch)
	sum := analysis.Window{
		Start: first.Start, End: second.End, Weight: second.Weight, Values: second.Values, Samples: sumOf(first.Samples, second.Samples),
		Canary: first.Canary.Plus(second.Canary), Stable: first.Stable.Plus(second.Stable), Proxies: first.Proxies.Plus(second.Proxies),
	}
	if sum.Validate() != nil {
		return Line{}, false
	}
	out := Line{
		Settings: b.Settings, T: b.T, Step: b.Step, Live: b.Live, Last: b.Last, Ended: b.Ended, Holdout: b.Holdout,
		Judged: b.Judged, Merged: max(a.Merged, 1) + max(b.Merged, 1), Gap: a.Gap,
	}
	out.setWindow(epoch, &sum)
	out.Seconds = new(*a.Seconds + *b.Seconds)
	return out, *out.Seconds <= longest
}

// touch reports whether a line goes on where another ended, in the same step.
func touch(a, b *Line) bool {
	const rounding = 1e-6
	return *a.Weight == *b.Weight && *a.Step == *b.Step && same(a.Live, b.Live) && math.Abs(*b.T-*b.Seconds-*a.T) < rounding
}

// same compares what pointers point to.
func same[T any](a, b *T) bool { return a == b || reflect.DeepEqual(a, b) }

// sumOf adds the samples of the same name, and keeps the others.
func sumOf(first, second []analysis.Sample) []analysis.Sample {
	out := append([]analysis.Sample(nil), first...)
	for _, s := range second {
		added := false
		for i := range out {
			if out[i].Name == s.Name {
				out[i].Canary, out[i].Stable, added = out[i].Canary.Plus(s.Canary), out[i].Stable.Plus(s.Stable), true
			}
		}
		if !added {
			out = append(out, s)
		}
	}
	return out
}
