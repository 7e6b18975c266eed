// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is whether golden files are written instead of compared.
var Update = flag.Bool("update", false, "write the golden files")

// Check compares a text with a file, or writes the file with -update.
func Check(t *testing.T, file, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s has changed; write it with -update (-want +got):\n%s", file, diff)
	}
}

// CheckDocs compares pages of the documentation, by their names, with the files of a folder
// that match a pattern: make generate-docs writes them.
func CheckDocs(t *testing.T, folder, pattern string, want map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(file)] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is stale; run make generate-docs (-generated +page):\n%s", folder, diff)
	}
}
