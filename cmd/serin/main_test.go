// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os/exec"
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

func TestCommandLinesRefused(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":           {[]string{"mangaer"}, "unknown command"},
		"the proxy, another program":   {[]string{"proxy"}, "unknown command"},
		"traces that go nowhere":       {[]string{"manager", "--proxy-image=a", "--tracing"}, "--tracing: OTEL_EXPORTER_OTLP_ENDPOINT: give the URL"},
		"metrics of no Service":        {[]string{"metrics", "--namespace=a", "--certificate-secret=b"}, "service"},
		"metrics without certificate":  {[]string{"metrics", "--namespace=a", "--service=b"}, "certificate-secret"},
		"metrics with half of one":     {[]string{"metrics", "--namespace=a", "--service=b", "--tls-cert-file=c"}, "tls-private-key-file"},
		"metrics with two of them":     {[]string{"metrics", "--namespace=a", "--service=b", "--tls-cert-file=c", "--tls-private-key-file=d", "--certificate-secret=e"}, "certificate-secret"},
		"metrics of an unknown source": {[]string{"metrics", "--namespace=a", "--service=b", "--certificate-secret=c", "--source=guess"}, "--source"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// Charts are what tenants write: what interprets them runs in a process of its own.
func TestTheManagerHoldsNoHelm(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(output)) {
		if strings.HasPrefix(name, "helm.sh/") || strings.HasPrefix(name, "github.com/Masterminds/sprig") {
			t.Errorf("serin holds %s: find what imports it with `go list -deps`", name)
		}
	}
}
