// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"regexp"
)

// noMemory is what the runtime of Go says when it gets none.
var noMemory = regexp.MustCompile(`^(fatal error: |runtime: ).*(out of memory|cannot allocate|cannot map)`)

// maxLine is how much of a line is looked at.
const maxLine = 256

// complaints are what a process writes to its standard error. They are not kept: they may
// have values of the release in them.
type complaints struct {
	exhausted bool
	line      []byte
}

func (c *complaints) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		c.line = append(c.line, part[:min(len(part), maxLine-len(c.line))]...)
		if ended {
			c.exhausted = c.exhausted || noMemory.Match(c.line)
			c.line = c.line[:0]
		}
		rest = after
	}
	return len(p), nil
}
