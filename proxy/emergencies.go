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
type emergencies struct {
	out   io.Writer
	mu    sync.Mutex
	first string
}

// Write passes on what nginx writes. nginx writes whole lines.
func (e *emergencies) Write(p []byte) (int, error) {
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
	return e.out.Write(p)
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
