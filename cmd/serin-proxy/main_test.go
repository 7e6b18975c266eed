// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/serin-dev/serin/cmd/program"
)

func TestCommandLinesRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"without a split":       {[]string{"--namespace=a", "--pod-uid=b"}, "split"},
		"with an argument":      {[]string{"--namespace=a", "--pod-uid=b", "--split=c", "d"}, "unknown command"},
		"with a useless folder": {[]string{"--namespace=a", "--pod-uid=b", "--split=c", "--dir=/proc/none"}, "--dir"},
	} {
		t.Run(name, func(t *testing.T) {
			root := program.Complete(newCommand())
			root.SetOut(&bytes.Buffer{})
			root.SetErr(&bytes.Buffer{})
			root.SetArgs(test.args)
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// What carries traffic has none of what only the control plane needs: less to load, to patch
// and to attack.
func TestTheDataPlaneHoldsNothingOfTheControlPlane(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	imported := strings.Fields(string(output))
	if len(imported) < 100 {
		t.Fatalf("go list names %d packages only", len(imported))
	}
	for _, name := range imported {
		for _, refused := range []string{
			"helm.sh/", "go.opentelemetry.io/", "github.com/aws/", "github.com/prometheus/prometheus", "github.com/cloudevents/", "k8s.io/apiserver",
			"k8s.io/apiextensions-apiserver", "github.com/serin-dev/serin/controllers", "github.com/serin-dev/serin/metricsapi",
		} {
			if strings.HasPrefix(name, refused) {
				t.Errorf("serin-proxy holds %s: find what imports it with `go mod why -m` or `go list -deps`", name)
			}
		}
	}
}

func TestTheProxyFindsOutWhereItRuns(t *testing.T) {
	folder := t.TempDir()
	module := filepath.Join(folder, "stream.so")
	if err := os.WriteFile(module, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, dir); err != nil {
		t.Fatal(err)
	}
	o := options{dir: dir, streamModule: module, connections: 1 << 30}
	got, err := o.render(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.EvalSymlinks(folder); string(got.Dir) != want { // a temporary folder may be behind a link itself
		t.Errorf("the folder is %s, want %s: nginx compares paths without links", got.Dir, want)
	}
	if got.StreamModule != module {
		t.Errorf("the stream module is %q", got.StreamModule)
	}
	if got.Workers < 1 || got.Workers > maxWorkers {
		t.Errorf("%d workers", got.Workers)
	}
	if got.Connections*2 > got.OpenFiles {
		t.Errorf("%d connections with %d open files", got.Connections, got.OpenFiles)
	}
	o.streamModule = filepath.Join(folder, "missing.so")
	if got, err = o.render(t.Context()); err != nil || got.StreamModule != "" {
		t.Errorf("a module that is built in: %q %v", got.StreamModule, err)
	}
}
