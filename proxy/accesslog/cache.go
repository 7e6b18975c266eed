// SPDX-License-Identifier: Apache-2.0

package accesslog

// maxEntries bounds how many different lines are remembered. They take some 300 bytes each.
const maxEntries = 1024

// cache gathers equal lines of the access log. Under load there are many: they differ in
// milliseconds, the status, the backend and the client only. Each is read once, and then
// no more than found again.
type cache struct {
	of map[string]*Entry
	// order are those to count, the first one first.
	order []*Entry
	// count counts a line.
	count func(Entry)
}

// Entry is a line that is there N times.
type Entry struct {
	Record Record
	// Valid is whether the line could be understood.
	Valid bool
	N     uint64
}

// add takes a line. It is counted when settle is called, at the latest.
func (c *cache) add(line []byte) {
	one := c.of[string(line)]
	if one == nil {
		if len(c.of) == maxEntries {
			c.settle()
			clear(c.of)
		}
		record, err := Parse(line)
		one = &Entry{Record: record, Valid: err == nil}
		c.of[string(line)] = one
	}
	if one.N == 0 {
		c.order = append(c.order, one)
	}
	one.N++
}

// settle counts what was added.
func (c *cache) settle() {
	for _, one := range c.order {
		c.count(*one)
		one.N = 0
	}
	c.order = c.order[:0]
}
