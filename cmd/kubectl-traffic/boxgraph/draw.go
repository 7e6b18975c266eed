// SPDX-License-Identifier: Apache-2.0

package boxgraph

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Text draws a graph. The edges name nodes by the index of their labels.
func Text(labels []string, edges []Edge) string {
	labels = marked(labels, edges)
	l := place(labels, slices.DeleteFunc(slices.Clone(edges), func(e Edge) bool { return e.From == e.To }))
	c := &canvas{}
	x := 0
	for i, column := range l.columns {
		width := 0
		for _, it := range column {
			width = max(width, l.items[it].width())
		}
		for _, it := range column {
			c.item(l.items[it], x, width)
		}
		links := l.linksFrom(i)
		turns := l.untangleRows(i, links)
		right := x + width + len(turns) + 4
		for _, k := range links {
			c.line(line{
				from: l.items[k.from].row, to: l.rowOf(k), left: x + width, right: right,
				turn: x + width + 1 + slices.Index(turns, k), arrow: !l.items[k.to].pass, back: k.both,
			})
		}
		x = right
	}
	return c.String()
}

// marked shows which nodes lead to themselves.
func marked(labels []string, edges []Edge) []string {
	labels = slices.Clone(labels)
	for i := range labels {
		if slices.Contains(edges, Edge{i, i}) {
			labels[i] += " ↻"
		}
	}
	return labels
}

func (it item) width() int {
	n := utf8.RuneCountInString(it.label)
	if it.box {
		return n + 4
	}
	if it.pass {
		return 1
	}
	return n + 1
}

// Sides of a cell that a line touches.
const (
	north = 1 << iota
	south
	west
	east
)

var glyphs = map[int]rune{
	west | east: '─', north | south: '│', south | east: '┌', south | west: '┐', north | east: '└', north | west: '┘',
	north | south | east: '├', north | south | west: '┤', south | west | east: '┬', north | west | east: '┴',
	north | south | west | east: '┼', west: '─', east: '─', north: '│', south: '│',
}

// canvas is text that grows as it is drawn on.
type canvas struct {
	text  [][]rune
	sides [][]int
}

func (c *canvas) grow(x, y int) {
	for len(c.text) <= y {
		c.text, c.sides = append(c.text, nil), append(c.sides, nil)
	}
	for len(c.text[y]) <= x {
		c.text[y], c.sides[y] = append(c.text[y], ' '), append(c.sides[y], 0)
	}
}

func (c *canvas) write(x, y int, text string) {
	for i, r := range []rune(text) {
		c.grow(x+i, y)
		c.text[y][x+i] = r
	}
}

// touch adds sides to a cell.
func (c *canvas) touch(x, y, sides int) {
	c.grow(x, y)
	c.sides[y][x] |= sides
	c.text[y][x] = glyphs[c.sides[y][x]]
}

func (c *canvas) horizontal(x1, x2, y int) {
	for x := x1; x < x2; x++ {
		c.touch(x, y, east)
		c.touch(x+1, y, west)
	}
}

func (c *canvas) vertical(x, y1, y2 int) {
	for y := min(y1, y2); y < max(y1, y2); y++ {
		c.touch(x, y, south)
		c.touch(x, y+1, north)
	}
}

// item draws a box, or a name, or a line that passes.
func (c *canvas) item(it item, x, width int) {
	switch {
	case it.pass:
		c.horizontal(x-1, x+width, it.row)
	case !it.box:
		c.write(x, it.row, " "+it.label)
	default:
		inner := it.width() - 2
		bottom := it.row + it.height() - 2
		c.write(x, it.row-1, "┌"+strings.Repeat("─", inner)+"┐")
		for y := it.row; y < bottom; y++ {
			c.write(x, y, "│"+strings.Repeat(" ", inner)+"│")
		}
		c.write(x+2, it.row, it.label)
		c.write(x, bottom, "└"+strings.Repeat("─", inner)+"┘")
	}
}

// line goes from an item at row from to one at row to, between two columns.
type line struct {
	from, to          int
	left, right, turn int
	arrow, back       bool
}

func (c *canvas) line(l line) {
	start := c.edge(l.left, l.from)
	if l.from == l.to {
		c.horizontal(start, l.right-1, l.from)
	} else {
		c.horizontal(start, l.turn, l.from)
		c.vertical(l.turn, l.from, l.to)
		c.horizontal(l.turn, l.right-1, l.to)
	}
	if l.arrow {
		c.write(l.right-1, l.to, "▶")
	}
	if l.back {
		c.write(start, l.from, "◀")
	}
}

// edge is the first free cell of a row, right of what is narrower than its column.
func (c *canvas) edge(x, y int) int {
	c.grow(x, y)
	for x > 0 && c.text[y][x-1] == ' ' {
		x--
	}
	return x
}

// String is what was drawn, without spaces at the ends of lines.
func (c *canvas) String() string {
	var b strings.Builder
	for _, row := range c.text {
		b.WriteString(strings.TrimRight(string(row), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
