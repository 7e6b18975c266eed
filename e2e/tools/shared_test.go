// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
)

// What has the same version is compiled once for the tests and for the program: without this,
// Helm alone takes minutes of a fresh machine.
func TestProgramsShareTheVersionsOfTheTests(t *testing.T) {
	tests := versions(t, filepath.Join("..", "go.mod"))
	for _, tool := range []Tool{Helm, CoreDNS} {
		for module, version := range versions(t, filepath.Join(tool.Name, "go.mod")) {
			if want, shared := tests[module]; shared && version != want {
				t.Errorf("tools/%s: run go get %s@%s there, the version of the tests; it has %s", tool.Name, module, want, version)
			}
		}
	}
}

func versions(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, require := range file.Require {
		found[require.Mod.Path] = require.Mod.Version
	}
	return found
}
