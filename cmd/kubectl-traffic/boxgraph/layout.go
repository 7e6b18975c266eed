// SPDX-License-Identifier: Apache-2.0

package boxgraph

import (
	"cmp"
	"slices"
)

// Edge leads from one node to another, by their indexes.
type Edge struct{ From, To int }

// item is something in a column: a box, the name of one further left, or a line that
// passes.
type item struct {
	label string
	// box is whether it has a frame.
	box bool
	// pass is whether a line only passes.
	pass bool
	// column and slot are its place, from the top left.
	column, slot int
	// ins is the number of lines that arrive, each at a row of its own.
	ins int
	// row is that of the label, at which lines leave and the first one arrives.
	row int
}

// height is the number of rows of an item, with those of a frame.
func (it item) height() int {
	if it.pass {
		return 1
	}
	return max(it.ins, 1) + 2
}

// link leads from an item to one in the next column. A link that is both leads back too.
type link struct {
	from, to int
	both     bool
}

// layout is the graph with a place for everything.
type layout struct {
	items   []item
	links   []link
	columns [][]int // items by column and slot
}

// sweeps over the columns bring the items near to those that they are linked with.
const sweeps = 8

// place decides where everything is drawn.
func place(labels []string, edges []Edge) *layout {
	l := &layout{}
	forward, back := untangle(len(labels), edges)
	column := columnsOf(len(labels), forward)
	for i, label := range labels {
		l.items = append(l.items, item{label: label, box: true, column: column[i]})
	}
	var alone []Edge
	for _, e := range back {
		if twin := slices.Index(forward, Edge{e.To, e.From}); twin >= 0 && column[e.From] == column[e.To]+1 && private(forward, back, forward[twin]) {
			l.links = append(l.links, link{e.To, e.From, true})
			forward = slices.Delete(forward, twin, twin+1)
			continue
		}
		alone = append(alone, e)
	}
	for _, e := range forward {
		l.lead(e)
	}
	for _, e := range alone {
		l.items = append(l.items, item{label: "↩ " + labels[e.To], column: column[e.From] + 1})
		l.links = append(l.links, link{e.From, len(l.items) - 1, false})
	}
	l.order()
	l.countIns()
	if len(l.columns) > 0 {
		l.stack(0, 0)
	}
	return l
}

// private is whether no other line shares the ends of an edge.
func private(forward, back []Edge, one Edge) bool {
	shares := func(e Edge) bool { return e != one && (e.From == one.From || e.To == one.To) }
	leaves := func(e Edge) bool { return e.From == one.From }
	return !slices.ContainsFunc(forward, shares) && !slices.ContainsFunc(back, leaves)
}

// untangle separates the edges that would close a circle, from a walk in the order of
// the nodes which begins at those that no edge leads to.
func untangle(nodes int, edges []Edge) (forward, back []Edge) {
	next := make([][]int, nodes)
	led := make([]bool, nodes)
	for _, e := range edges {
		next[e.From] = append(next[e.From], e.To)
		led[e.To] = led[e.To] || e.From != e.To
	}
	const unseen, open, done = 0, 1, 2
	state := make([]int, nodes)
	var walk func(int)
	walk = func(n int) {
		state[n] = open
		for _, to := range next[n] {
			if state[to] == open {
				back = append(back, Edge{n, to})
				continue
			}
			forward = append(forward, Edge{n, to})
			if state[to] == unseen {
				walk(to)
			}
		}
		state[n] = done
	}
	for _, first := range []bool{true, false} {
		for n := range nodes {
			if state[n] == unseen && (!first || !led[n]) {
				walk(n)
			}
		}
	}
	return forward, back
}

// columnsOf puts each node right of all that lead to it.
func columnsOf(nodes int, forward []Edge) []int {
	column := make([]int, nodes)
	for changed := true; changed; {
		changed = false
		for _, e := range forward {
			if column[e.To] <= column[e.From] {
				column[e.To] = column[e.From] + 1
				changed = true
			}
		}
	}
	return column
}

// lead adds the links of an edge, with something to pass in each column between.
func (l *layout) lead(e Edge) {
	at := e.From
	for c := l.items[e.From].column + 1; c < l.items[e.To].column; c++ {
		l.items = append(l.items, item{pass: true, column: c})
		l.links = append(l.links, link{at, len(l.items) - 1, false})
		at = len(l.items) - 1
	}
	l.links = append(l.links, link{at, e.To, false})
}

// order gives the items of each column their slots, by the mean slot of what they are
// linked with.
func (l *layout) order() {
	for i, it := range l.items {
		for len(l.columns) <= it.column {
			l.columns = append(l.columns, nil)
		}
		l.columns[it.column] = append(l.columns[it.column], i)
	}
	l.number()
	for sweep := range sweeps {
		left := sweep%2 == 0
		for _, column := range l.columns {
			slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(l.mean(a, left), l.mean(b, left)) })
			l.number()
		}
	}
}

func (l *layout) number() {
	for _, column := range l.columns {
		for slot, i := range column {
			l.items[i].slot = slot
		}
	}
}

// mean is that of the slots on one side, or an item's own where it has none there.
func (l *layout) mean(i int, left bool) float64 {
	sum, n := 0, 0
	for _, k := range l.links {
		near, far := k.to, k.from
		if !left {
			near, far = far, near
		}
		if near == i {
			sum += l.items[far].slot
			n++
		}
	}
	if n == 0 {
		return float64(l.items[i].slot)
	}
	return float64(sum) / float64(n)
}
