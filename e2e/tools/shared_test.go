// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
)

// What has the same version is compiled once for the tests and for the programs: without this,
// Kubernetes, Helm and Traefik take minutes more of a fresh machine, and each package that imports
// k8s.io/utils is compiled for the operator and for the tests.
func TestProgramsShareTheVersionsOfTheTests(t *testing.T) {
	const folder, thisCheckout = "e2e/tools/", "github.com/serin-dev/serin"
	tests := versions(t, filepath.Join("..", "go.mod"))
	own := map[string][]string{
		folder + Traefik.Name: {"sigs.k8s.io/gateway-api"}, // it reads routes as its release does
	}
	for _, program := range []string{
		".", "bench", folder + Kubernetes.Name, folder + Helm.Name, folder + CoreDNS.Name, folder + NetworkPolicies.Name, folder + Traefik.Name,
	} {
		for module, version := range versions(t, filepath.Join("..", "..", program, "go.mod")) {
			if module == thisCheckout || slices.Contains(own[program], module) {
				continue
			}
			if want, shared := tests[module]; shared && version != want {
				t.Errorf("run go get %s@%s in the folder %s, the version of the tests; it has %s", module, want, program, version)
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
