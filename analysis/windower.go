// SPDX-License-Identifier: Apache-2.0

package analysis

// Windower turns the successive scrapes of one target into disjoint windows.
// It is a value: keep the one that Add returns. The zero Windower is ready.
type Windower struct {
	last Scrape
}

// Add takes the next scrape and the weight known once the scrape had ended. It
// returns the window since the scrape before, or the reason why there is none.
//
//	scrape has                         then
//	no pod                             NoData; the scrape before stays the beginning
//	a time not after the one before    OutOfOrder; dropped, nothing is revised
//	a pod not in the scrape before     that pod is left out of the window
//	a counter that went backwards      that pod is left out of the window
//	begun before the weight's Since    WeightChanging; the scrape is a new beginning
func (w Windower) Add(s Scrape, weight Weight) (Windower, Window, Reason) {
	switch {
	case len(s.Pods) == 0:
		return w, Window{}, ReasonNoData
	case w.last.At.IsZero():
		return Windower{last: s}, Window{}, ReasonFirstScrape
	case !s.At.After(w.last.At):
		return w, Window{}, ReasonOutOfOrder
	}
	next := Windower{last: s}
	switch {
	case weight.Since.IsZero(), w.last.At.Before(weight.Since):
		return next, Window{}, ReasonWeightChanging
	case s.At.Sub(w.last.At) > MaxGap:
		return next, Window{}, ReasonGap
	}
	win := Window{Start: w.last.At, End: s.At, Weight: weight.Percent}
	if pods := win.addIncreases(w.last.Pods, s.Pods); pods == 0 || win.Validate() != nil {
		return next, Window{}, ReasonSeriesChanged
	}
	return next, win, ""
}

// addIncreases sums what every pod that is in both readings counted between
// them, and returns how many pods there were.
func (w *Window) addIncreases(prev, cur map[string]PodCounters) int {
	pods := 0
	for key, now := range cur {
		before, known := prev[key]
		if !known {
			continue
		}
		canary, canaryOK := now.Canary.Increase(before.Canary)
		stable, stableOK := now.Stable.Increase(before.Stable)
		all, allOK := now.All.Increase(before.All)
		if !canaryOK || !stableOK || !allOK {
			// One variant without the other would compare different traffic.
			continue
		}
		w.Canary, w.Stable, w.Proxies = w.Canary.Plus(canary), w.Stable.Plus(stable), w.Proxies.Plus(all)
		pods++
	}
	w.Proxies.Spread = Spread{} // what they refuse is counted, and nothing is inferred from it
	return pods
}
