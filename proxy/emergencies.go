// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxEmergency bounds a remembered line of nginx's error log.
const maxEmergency = 512

// emergencies passes nginx's error log on and remembers the first line that says
// why nginx could not take a configuration over.
//
// Of lines about an expression that takes too long only the beginning is passed on:
// the rest is the value of a header, such as a cookie.
type emergencies struct {
	out   io.Writer
	mu    sync.Mutex
	first string
}

// Write passes on what nginx writes. nginx writes whole lines.
func (e *emergencies) Write(p []byte) (int, error) {
	e.remember(p)
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

func (e *emergencies) remember(p []byte) {
	for line := range bytes.Lines(p) {
		_, text, found := bytes.Cut(line, []byte("[emerg] "))
		if !found {
			continue
		}
		text = bytes.TrimSpace(text[:min(len(text), maxEmergency)])
		e.mu.Lock()
		if e.first == "" {
			e.first = string(bytes.ToValidUTF8(text, nil))
		}
		e.mu.Unlock()
	}
}

func (e *emergencies) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.first = ""
}

// explain adds the first emergency since the reset to an error.
func (e *emergencies) explain(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == "" {
		return err
	}
	return fmt.Errorf("%w; nginx says: %s", err, e.first)
}
