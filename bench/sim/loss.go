// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// Losses are the lines of rivals that did better than Serin in a cell with a bad
// canary: found it more often by five points or more, or failed a tenth fewer
// requests and at least five.
func Losses(lines []Line) []Loss {
	table := index(lines)
	var losses []Loss
	for _, s := range table[serin.Name] {
		for _, l := range lines {
			if l.Cell != s.Cell || l.Contestant == serin.Name || !s.Cell.Bad() {
				continue
			}
			finds := Share{l.Found, l.Runs}.Rate() >= Share{s.Found, s.Runs}.Rate()+.05
			saves := l.Failed < .9*s.Failed && l.Failed <= s.Failed-5
			if finds || saves && !s.Cell.Family.Latency {
				losses = append(losses, Loss{Serin: s, Rival: l, False: twin(table[l.Contestant], l.Cell)})
			}
		}
	}
	return losses
}

// Loss is a cell in which a rival did better.
type Loss struct {
	Serin, Rival Line
	// False is how often the rival rolls back good canaries in the same traffic;
	// nothing when there is none to compare with.
	False Share
}

// twin is the false rollbacks where nothing else differs than that the canary is
// good. Families without such a cell have their twin in plain traffic.
func twin(lines []Line, c Cell) Share {
	family := c.Family.Name
	switch {
	case c.Family.onset > 0:
		family = "independent"
	case c.Family.Latency:
		family = "slower"
	}
	i := slices.IndexFunc(lines, func(l Line) bool {
		return l.Cell.Good() && l.Cell.Family.Name == family && l.Cell.Rate == c.Rate && l.Cell.Base == c.Base
	})
	if i < 0 {
		return Share{}
	}
	return Share{lines[i].False, lines[i].Runs}
}
