// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

const quietFor = 30 * time.Second

// TestNothingToDoMeansNoRequests counts what the operator asks of the API server
// while nothing happens: nothing but the watches that are open.
func TestNothingToDoMeansNoRequests(t *testing.T) {
	s := website(t, newMeasurements())
	<-time.After(3 * time.Second) // what Ready set off, such as its event, is over
	from := time.Now()
	<-time.After(quietFor)
	requests, watches := s.requests(from)
	if len(requests) > 0 {
		t.Errorf("%d requests in %s:\n%s", len(requests), quietFor, strings.Join(requests, "\n"))
	}
	t.Logf("%d requests and %d watches renewed in %s", len(requests), watches, quietFor)
	if len(s.pods()) == 0 {
		t.Error("there is no website")
	}
}

// auditEvent is the part of an event of the audit log that is needed.
type auditEvent struct {
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	UserAgent  string    `json:"userAgent"`
	Received   time.Time `json:"requestReceivedTimestamp"`
}

// requests are those of the operator since a time, by the audit log.
func (s *scene) requests(from time.Time) (requests []string, watches int) {
	s.Helper()
	f, err := os.Open(plane.AuditLog)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	seen := false
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.Fatal(err)
		}
		if !strings.HasPrefix(e.UserAgent, "serin-manager") {
			continue
		}
		seen = true
		switch {
		case e.Received.Before(from):
		case e.Verb == "watch":
			watches++
		default:
			requests = append(requests, e.Verb+" "+e.RequestURI)
		}
	}
	if !seen {
		s.Fatal("the audit log has no request of the operator")
	}
	return requests, watches
}
