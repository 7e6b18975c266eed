// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// anyNamespace is the namespace of an object that a migration writes.
var anyNamespace = regexp.MustCompile(`(?m)^  namespace: \S+$`)

// migrationInputs are those of the golden tests.
const migrationInputs = "../../cmd/kubectl-traffic/migration/testdata"

func TestWhatAMigrationWritesIsAdmitted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	inputs, err := filepath.Glob(filepath.Join(migrationInputs, "*", "*.in.yaml"))
	if err != nil || len(inputs) < 6 {
		t.Fatal(inputs, err)
	}
	file := filepath.Join(t.TempDir(), "serin.yaml")
	for _, input := range inputs {
		a := s.does("migrate -f " + input)
		if !strings.Contains(a.errs, "\nreport: no equivalent: ") {
			t.Errorf("%s: no report: %s", input, a.errs)
		}
		if err := os.WriteFile(file, []byte(anyNamespace.ReplaceAllString(a.out, "  namespace: "+s.namespace)), 0o600); err != nil {
			t.Fatal(err)
		}
		lint := s.does("rollout lint -f " + file)
		if got, want := strings.Count(lint.out, ": would be accepted\n"), strings.Count(a.out, "\napiVersion: "); got != want {
			t.Errorf("%s: %d of %d objects would be accepted:\n%s", input, got, want, lint.out)
		}
	}
}

func TestAMigrationReadsObjectsOfOtherTools(t *testing.T) {
	s := newScene(t)
	s.serveArgoRollouts()
	text, err := os.ReadFile(filepath.Join(migrationInputs, "argo", "bluegreen.in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.apply(text)
	active := service("billing")
	active.Name, active.Spec.Selector["rollouts-pod-template-hash"] = "billing-active", "abc"
	s.create(active)
	report := filepath.Join(t.TempDir(), "report.txt")
	a := s.does("migrate rollout/billing --report " + report)
	for _, want := range []string{"kind: Deployment\n", "name: billing-active\n", "# From rollout.argoproj.io/" + s.namespace + "/billing in cluster.\n"} {
		if !strings.Contains(a.out, want) {
			t.Errorf("%q is missing in:\n%s", want, a.out)
		}
	}
	if strings.Contains(a.out, "rollouts-pod-template-hash") {
		t.Errorf("the Service selects one version:\n%s", a.out)
	}
	if got, err := os.ReadFile(report); err != nil || !strings.Contains(string(got), "previewReplicaCount: no equivalent: ") {
		t.Errorf("the report is %s, %v", got, err)
	}
	for line, want := range map[string]string{
		"migrate rollout/nosuch":    "there is no rollout/nosuch",
		"migrate -f nosuch.yaml":    "nosuch.yaml",
		"migrate -f " + t.TempDir(): "has no file that ends with",
	} {
		if got := s.traffic("", line); got.status != 1 || !strings.Contains(got.errs, want) || got.out != "" {
			t.Errorf("%s: exit status %d: %s", line, got.status, got.errs)
		}
	}
}
