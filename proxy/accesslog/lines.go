// SPDX-License-Identifier: Apache-2.0

package accesslog

import "bytes"

// maxLine is far more than a line of the access log has. What is longer is noise.
const maxLine = 4096

// lines cuts a stream of bytes into lines. What has no end yet is kept until the
// rest comes.
type lines struct {
	partial []byte
	// tooLong is set while the rest of a line longer than maxLine is being skipped.
	tooLong bool
	// line takes each complete line, without its end. It must not keep the slice.
	line func([]byte)
	// dropped is called for each line that is too long.
	dropped func()
}

// add takes the next bytes of the stream.
func (l *lines) add(chunk []byte) {
	for {
		head, rest, found := bytes.Cut(chunk, []byte{'\n'})
		if !found {
			l.keep(chunk)
			return
		}
		l.end(head)
		chunk = rest
	}
}

// end completes the present line with head.
func (l *lines) end(head []byte) {
	switch {
	case l.tooLong:
		l.tooLong = false
	case len(l.partial)+len(head) > maxLine:
		l.dropped()
	case len(l.partial) > 0:
		l.partial = append(l.partial, head...)
		l.line(l.partial)
	default:
		l.line(head)
	}
	l.partial = l.partial[:0]
}

// keep remembers the beginning of a line.
func (l *lines) keep(tail []byte) {
	if l.tooLong {
		return
	}
	if len(l.partial)+len(tail) > maxLine {
		l.tooLong = true
		l.partial = l.partial[:0]
		l.dropped()
		return
	}
	l.partial = append(l.partial, tail...)
}

// pending is how many bytes were taken of a line that has no end yet.
func (l *lines) pending() int { return len(l.partial) }

// finish ends the stream: a line without an end is one that was never written whole.
func (l *lines) finish() {
	if len(l.partial) > 0 {
		l.dropped()
		l.partial = nil
	}
}
