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

// auditEvent is the part of an event of the audit log that is needed.
type auditEvent struct {
	Verb        string            `json:"verb"`
	RequestURI  string            `json:"requestURI"`
	UserAgent   string            `json:"userAgent"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// operatorRequests are the operator's requests since a time, but for watches. A
// request that its role forbids fails the test, whenever it was made. (The API
// server also refuses writes in a namespace that is being deleted; these it
// allows first.)
func operatorRequests(t *testing.T, since time.Time) (requests []string, watches int) {
	t.Helper()
	f, err := os.Open(plane.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	seen := false
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e auditEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil || !strings.HasPrefix(e.UserAgent, "serin-manager") {
			continue // the last line may be half written
		}
		seen = true
		if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
			t.Errorf("the chart's role forbids %s %s", e.Verb, e.RequestURI)
		}
		switch {
		case e.Received.Before(since):
		case e.Verb == "watch":
			watches++
		default:
			requests = append(requests, e.Verb+" "+e.RequestURI)
		}
	}
	if !seen {
		t.Fatal("the audit log has no request of the operator")
	}
	return requests, watches
}
