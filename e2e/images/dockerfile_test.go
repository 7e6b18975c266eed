// SPDX-License-Identifier: Apache-2.0

package images

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the Dockerfiles anew")

// goVersion is the release that this module asks for, without its patch.
func goVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "go "); ok {
			return version[:strings.LastIndexByte(version, '.')]
		}
	}
	t.Fatal("go.mod names no release of Go")
	return ""
}

func TestTheDockerfilesAreInStepWithTheTable(t *testing.T) {
	for _, image := range Table {
		t.Run(image.Reference, func(t *testing.T) {
			want, err := renderDockerfile(image, goVersion(t))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(image.Dockerfile, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(image.Dockerfile)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run `go test ./images -update` in e2e (-want +got):\n%s", diff)
			}
		})
	}
}
