// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// beat is how often a stream says that it is alive.
	beat = 15 * time.Second
	// writeTimeout ends the stream of a browser that does not read.
	writeTimeout = 30 * time.Second
)

// stream sends events to one browser.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// newStream begins an answer that goes on until the browser leaves.
func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy before the page must not collect events
	w.WriteHeader(http.StatusOK)
	return &stream{w, http.NewResponseController(w)}
}

// send sends a value as an event.
func (s *stream) send(event string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("send %s: %w", event, err)
	}
	return s.write("event: %s\ndata: %s\n\n", event, data)
}

// alive sends a comment, which shows whether the browser is still there.
func (s *stream) alive() error { return s.write(": alive\n\n") }

func (s *stream) write(format string, args ...any) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.rc.Flush()
}
