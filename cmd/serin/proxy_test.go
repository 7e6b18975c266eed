// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// execute runs the command and returns what it prints and its error.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersionNamesTheProgram(t *testing.T) {
	out, err := execute(t, "version")
	if err != nil || !strings.HasPrefix(out, "serin ") {
		t.Errorf("got %q %v", out, err)
	}
}

func TestCommandLinesRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":           {[]string{"prxy"}, "unknown command"},
		"an unknown log level":         {[]string{"version", "--log-level=loud"}, "--log-level"},
		"an unknown log format":        {[]string{"version", "--log-format=xml"}, "--log-format"},
		"metrics of no Service":        {[]string{"metrics", "--namespace=a", "--certificate-secret=b"}, "service"},
		"metrics without certificate":  {[]string{"metrics", "--namespace=a", "--service=b"}, "certificate-secret"},
		"metrics with half of one":     {[]string{"metrics", "--namespace=a", "--service=b", "--tls-cert-file=c"}, "tls-private-key-file"},
		"metrics with two of them":     {[]string{"metrics", "--namespace=a", "--service=b", "--tls-cert-file=c", "--tls-private-key-file=d", "--certificate-secret=e"}, "certificate-secret"},
		"metrics of an unknown source": {[]string{"metrics", "--namespace=a", "--service=b", "--certificate-secret=c", "--source=guess"}, "--source"},
		"a proxy without a split":      {[]string{"proxy", "--namespace=a", "--pod-uid=b"}, "split"},
		"a proxy with an argument":     {[]string{"proxy", "--namespace=a", "--pod-uid=b", "--split=c", "d"}, "unknown command"},
		"a proxy that can't keep any":  {[]string{"proxy", "--namespace=a", "--pod-uid=b", "--split=c", "--dir=/proc/none"}, "--dir"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
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
	o := proxyOptions{dir: dir, streamModule: module, connections: 1 << 30}
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
