// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// auditEvent is the part of an event of the audit log that is needed.
type auditEvent struct {
	Verb        string            `json:"verb"`
	RequestURI  string            `json:"requestURI"`
	Annotations map[string]string `json:"annotations"`
	User        struct {
		Username string `json:"username"`
	} `json:"user"`
	// ObjectRef is nil for what is no object, such as discovery.
	ObjectRef *struct {
		Namespace   string `json:"namespace"`
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	// Received is when the API server got the request, and Answered when it had answered it.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	// ImpersonatedUser is as whom the user acts, if as another.
	ImpersonatedUser *struct{} `json:"impersonatedUser"`
}

func (e auditEvent) forbidden() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// audited runs the tests, and then looks whether the chart's role forbade an operator of
// any of them a request. (The API server also refuses writes in a namespace that is being
// deleted; these it allows first.) When all tests passed, it also looks whether the chart grants
// a right that none of them used.
type audited struct{ *testing.M }

func (a audited) Run() int {
	status := a.M.Run()
	requests, err := auditedSince(0, operatorAgent)
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the audit log:", err)
		return max(status, 1)
	}
	for _, e := range requests {
		if e.forbidden() && e.ImpersonatedUser == nil { // a namespace may give its own account nothing
			fmt.Fprintf(os.Stderr, "the chart's role forbids %s %s\n", e.Verb, e.RequestURI)
			status = max(status, 1)
		}
	}
	if selected := flag.Lookup("test.run").Value.String(); selected != "" || status != 0 || *withoutPolicies || *otherKubernetes != "" {
		return status // not all of the tests use each right
	}
	log, err := os.Open(plane.AuditLog)
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the audit log:", err)
		return max(status, 1)
	}
	defer func() { _ = log.Close() }() // it is only read
	problems, err := checkUsed(chart, log, usedElsewhere)
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
		status = max(status, 1)
	}
	return status
}

// auditEnd is where the audit log ends by now.
func auditEnd(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(plane.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// auditedSince are the requests by agents that begin with a name, from a place in the
// audit log on.
func auditedSince(offset int64, agent string) (events []auditEvent, err error) {
	f, err := os.Open(plane.AuditLog)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return auditEvents(f, `"userAgent":"`+agent)
}

// auditEvents are those of an audit log whose lines have a text.
func auditEvents(log io.Reader, text string) (events []auditEvent, err error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e auditEvent
		// The last line may be half written.
		if bytes.Contains(lines.Bytes(), []byte(text)) && json.Unmarshal(lines.Bytes(), &e) == nil {
			events = append(events, e)
		}
	}
	return events, lines.Err()
}

// operatorRequests are the requests of the operators of a scene from a place in the audit
// log on, but for watches.
func (s *scene) operatorRequests(since int64) (requests []string, watches int) {
	s.Helper()
	events, err := auditedSince(since, s.userAgent())
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events {
		if e.Verb == "watch" {
			watches++
			continue
		}
		requests = append(requests, e.Verb+" "+e.RequestURI)
	}
	return requests, watches
}
