// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
)

// What has the same version is compiled once for the tests and for the program: without this,
// Helm alone takes minutes of a fresh machine, and each package that imports k8s.io/utils is compiled
// for the operator and for the tests.
func TestProgramsShareTheVersionsOfTheTests(t *testing.T) {
	tests := versions(t, filepath.Join("..", "go.mod"))
	for _, folder := range []string{"e2e/tools/" + Helm.Name, "e2e/tools/" + CoreDNS.Name, ".", "bench"} {
		for module, version := range versions(t, filepath.Join("..", "..", folder, "go.mod")) {
			if want, shared := tests[module]; shared && version != want && module != "github.com/serin-dev/serin" { // this checkout
				t.Errorf("run go get %s@%s in the folder %s, the version of the tests; it has %s", module, want, folder, version)
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
