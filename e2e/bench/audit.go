// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// auditPolicy logs what is counted and nothing else: every request of the operator,
// with the bodies that tell which of its controllers it is from; what changes a Deployment's template; what the
// proxies report; and how many pods of a ReplicaSet are available.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  users: ["` + operatorUser + `"]
  resources: [{group: events.k8s.io, resources: [events]}, {group: "", resources: [events]}, {group: split.smi-spec.io, resources: [trafficsplits]}]
- level: Metadata
  users: ["` + operatorUser + `"]
- level: Metadata
  verbs: [patch]
  resources: [{group: apps, resources: [deployments]}, {group: split.smi-spec.io, resources: [trafficsplits/status]}]
- level: Request
  verbs: [update]
  resources: [{group: apps, resources: [replicasets/status]}]
- level: None
`

// Audit is what a control plane needs among its API server's arguments. It
// writes the policy into dir, where the log will be too.
func Audit(dir string) ([]string, error) {
	policy := filepath.Join(dir, "bench-audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + auditLog(dir)}, nil
}

func auditLog(dir string) string { return filepath.Join(dir, "bench-audit.log") }

// request is the part of an event of the audit log that is needed.
type request struct {
	Verb      string    `json:"verb"`
	URI       string    `json:"requestURI"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	Answered  time.Time `json:"stageTimestamp"`
	User      struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Body        json.RawMessage   `json:"requestObject"`
	Annotations map[string]string `json:"annotations"`
}

// byOperator reports whether the operator asked.
func (r *request) byOperator() bool { return r.User.Name == operatorUser }

// resource is "replicasets/status", or the path of what is no resource.
func (r *request) resource() string {
	switch {
	case r.Object.Resource == "":
		return r.URI
	case r.Object.Subresource != "":
		return r.Object.Resource + "/" + r.Object.Subresource
	}
	return r.Object.Resource
}

// logSize is where the next request will be logged.
func logSize(log string) (int64, error) {
	info, err := os.Stat(log)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	return info.Size(), nil
}

// readLog reads what was logged from an offset on.
func readLog(log string, from int64) ([]request, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return parseLog(f)
}

// maxLine is the longest line of the log that is read, in bytes.
const maxLine = 4 << 20

// parseLog reads requests in the order in which they ended. The last line may be
// half written; any other that can't be read is an error.
func parseLog(r io.Reader) ([]request, error) {
	var out []request
	var broken error
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if broken != nil {
			return nil, broken
		}
		var one request
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			broken = fmt.Errorf("line %d of the audit log: %w", len(out)+1, err)
			continue
		}
		out = append(out, one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return out, nil
}

// writeRequests writes the operator's requests, one a line.
func writeRequests(w io.Writer, requests []request) {
	byReceived := slices.Clone(requests)
	slices.SortStableFunc(byReceived, func(a, b request) int { return a.Received.Compare(b.Received) })
	for i := range byReceived {
		r := &byReceived[i]
		if c := classify(r); r.byOperator() && c.Class != ClassLease && c.Class != ClassWatch {
			fmt.Fprintf(w, "%s %d %-5s %-6s %s %s/%s\n", r.Received.Format("15:04:05.000"), r.Response.Code, c.Class, c.Verb, c.What, r.Object.Namespace, r.Object.Name)
		}
	}
}
