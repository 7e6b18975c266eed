// SPDX-License-Identifier: Apache-2.0

package proxy

// maxRepeats bounds how many different lines are remembered. They take some 300 bytes each.
const maxRepeats = 1024

// repeats gathers equal lines of the access log. Under load there are many: they differ in
// milliseconds, the status, the backend and the client only. Each is read once, and then
// no more than found again.
type repeats struct {
	of map[string]*repeat
	// order are those to count, the first one first.
	order []*repeat
	// count counts a line.
	count func(repeat)
}

// repeat is a line that is there n times.
type repeat struct {
	record record
	// valid is whether the line could be understood.
	valid bool
	n     uint64
}

// add takes a line. It is counted when settle is called, at the latest.
func (r *repeats) add(line []byte) {
	one := r.of[string(line)]
	if one == nil {
		if len(r.of) == maxRepeats {
			r.settle()
			clear(r.of)
		}
		record, err := parseRecord(line)
		one = &repeat{record: record, valid: err == nil}
		r.of[string(line)] = one
	}
	if one.n == 0 {
		r.order = append(r.order, one)
	}
	one.n++
}

// settle counts what was added.
func (r *repeats) settle() {
	for _, one := range r.order {
		r.count(*one)
		one.n = 0
	}
	r.order = r.order[:0]
}
