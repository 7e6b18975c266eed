// SPDX-License-Identifier: Apache-2.0

package boxgraph

import (
	"cmp"
	"slices"
)

// gap is the number of empty rows between items.
const gap = 1

// stack gives the items of a column their rows, from a row on.
func (l *layout) stack(column, from int) {
	for _, i := range l.columns[column] {
		it := &l.items[i]
		it.row = from
		if !it.pass {
			it.row++
		}
		from += it.height() + gap
	}
}

// countIns counts the lines that arrive at each item.
func (l *layout) countIns() {
	for _, k := range l.links {
		l.items[k.to].ins++
	}
}

func (l *layout) linksFrom(column int) []link {
	var links []link
	for _, k := range l.links {
		if l.items[k.from].column == column {
			links = append(links, k)
		}
	}
	return links
}

// rowOf is the row at which a link arrives: those that come from further up, higher.
func (l *layout) rowOf(k link) int {
	row := l.items[k.to].row
	for _, o := range l.links {
		if o.to == k.to && cmp.Or(cmp.Compare(l.items[o.from].row, l.items[k.from].row), cmp.Compare(o.from, k.from)) < 0 {
			row++
		}
	}
	return row
}

// untangleRows gives the next column its rows and returns the links that turn, in the
// order in which they do so. Where no order keeps one line off another, the column is
// moved down until there is one, at the latest below all of this column.
func (l *layout) untangleRows(column int, links []link) []link {
	if column+1 == len(l.columns) {
		return nil
	}
	for shift := 0; ; shift++ {
		l.stack(column+1, shift)
		if order, solved := l.turns(links); solved {
			return order
		}
	}
}

// turns orders the links that turn, each in a column of its own, so that no line runs
// over another one: what leaves a row at which another one arrives must have turned
// before. It tells whether there is such an order.
func (l *layout) turns(links []link) ([]link, bool) {
	var turning []link
	for _, k := range links {
		if l.items[k.from].row != l.rowOf(k) {
			turning = append(turning, k)
		} else if slices.ContainsFunc(links, func(o link) bool { return o.from != k.from && l.rowOf(o) == l.rowOf(k) }) {
			return nil, false
		}
	}
	slices.SortStableFunc(turning, func(a, b link) int { return cmp.Compare(l.items[a.from].row, l.items[b.from].row) })
	var order []link
	for len(turning) > 0 {
		free := slices.IndexFunc(turning, func(k link) bool {
			return !slices.ContainsFunc(turning, func(o link) bool { return o != k && l.items[o.from].row == l.rowOf(k) })
		})
		if free < 0 {
			return nil, false
		}
		order = append(order, turning[free])
		turning = slices.Delete(turning, free, free+1)
	}
	return order, true
}
