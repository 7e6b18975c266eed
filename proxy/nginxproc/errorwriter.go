// SPDX-License-Identifier: Apache-2.0

package nginxproc

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"
)

// maxErrorLine bounds a remembered line of nginx's error log.
const maxErrorLine = 512

// errorWriter passes nginx's error log on and remembers the first line that says
// why nginx could not take a configuration over.
//
// Of lines about an expression that takes too long only the beginning is passed on:
// the rest is the value of a header, such as a cookie.
type errorWriter struct {
	out io.Writer
	// killed is called with the number of workers that are said to have ended by a signal.
	killed func(workers int)
	mu     sync.Mutex
	first  string
}

// Write passes on what nginx writes. nginx writes whole lines.
func (e *errorWriter) Write(p []byte) (int, error) {
	e.remember(p)
	if n := len(workerKilled.FindAllIndex(p, -1)); n > 0 && e.killed != nil {
		e.killed(n)
	}
	if !bytes.Contains(p, matchFailed) {
		return e.out.Write(p)
	}
	for line := range bytes.Lines(p) {
		if i := bytes.Index(line, matchFailed); i >= 0 {
			line = append(bytes.Clone(line[:i+len(matchFailed)]), '\n')
		}
		if _, err := e.out.Write(line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// matchFailed is what nginx says when an expression could not be matched: the name
// of the function of PCRE or PCRE2 is before it.
var matchFailed = []byte("() failed: -")

// workerKilled is what a master says of a worker that was killed, or that
// crashed. It is looked for at the beginning of a line, where no client can write.
var workerKilled = regexp.MustCompile(`(?m)^[0-9/]+ [0-9:]+ \[alert\] [0-9#]+: worker process [0-9]+ exited on signal `)

func (e *errorWriter) remember(p []byte) {
	for line := range bytes.Lines(p) {
		_, text, found := bytes.Cut(line, []byte("[emerg] "))
		if !found {
			continue
		}
		text = bytes.TrimSpace(text[:min(len(text), maxErrorLine)])
		e.mu.Lock()
		if e.first == "" {
			e.first = string(bytes.ToValidUTF8(text, nil))
		}
		e.mu.Unlock()
	}
}

func (e *errorWriter) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.first = ""
}

// explain adds the first such error since the reset to an error.
func (e *errorWriter) explain(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == "" {
		return err
	}
	return fmt.Errorf("%w; nginx says: %s", err, e.first)
}
