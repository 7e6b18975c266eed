// SPDX-License-Identifier: Apache-2.0

package accesslog

// Reader cuts what comes of a log into lines and reads them.
type Reader struct {
	lines lines
	cache cache
}

// NewReader makes a Reader. count is called for each line, and of equal ones together;
// dropped of each line that is too long or has no end.
func NewReader(count func(Entry), dropped func()) *Reader {
	r := &Reader{cache: cache{of: map[string]*Entry{}, count: count}}
	r.lines = lines{line: r.cache.add, dropped: dropped}
	return r
}

// Take reads the next bytes. It returns how many bytes have been counted since the last
// time: all but those of a line whose end is still to come, and those of which that came.
func (r *Reader) Take(chunk []byte) int64 {
	before := r.lines.pending()
	r.lines.add(chunk)
	r.cache.settle()
	return int64(len(chunk) + before - r.lines.pending())
}

// Finish ends the log: a line without an end is one that was never written whole.
func (r *Reader) Finish() { r.lines.finish() }
