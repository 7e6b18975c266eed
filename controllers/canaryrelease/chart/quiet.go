// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"io"
	"log"
	"regexp"
	"sync"
)

// harmless are the lines that Go's own web server writes to the standard logger.
var harmless = regexp.MustCompile(`^(\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2} )?http2?: `)

// quiet drops what Helm's packages write to the standard logger of the process, to
// which log/slog writes too: where values of a chart and of a user don't fit
// together, they print the values, and there is no setting for it. Serin itself
// writes to another logger.
var quiet = sync.OnceFunc(func() { log.SetOutput(filter{log.Writer()}) })

type filter struct{ next io.Writer }

func (f filter) Write(line []byte) (int, error) {
	if !harmless.Match(line) {
		return len(line), nil
	}
	return f.next.Write(line)
}
