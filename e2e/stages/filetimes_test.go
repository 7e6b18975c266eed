// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// checkout is a git repository with committed files.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "first"}} {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return root
}

func timeOf(t *testing.T, path ...string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestTwoClonesHaveTheSameFileTimes(t *testing.T) {
	files := map[string]string{"a.txt": "one", "folder/b.txt": "two"}
	first, second := checkout(t, files), checkout(t, files)
	for _, root := range []string{first, second} {
		if err := SetFileTimes(t.Context(), root); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.txt", "folder", "folder/b.txt"} {
		if a, b := timeOf(t, first, name), timeOf(t, second, name); !a.Equal(b) || time.Since(a) < time.Minute {
			t.Errorf("%s: %s and %s", name, a, b)
		}
	}
	if timeOf(t, first, "a.txt").Equal(timeOf(t, first, "folder/b.txt")) {
		t.Error("files of different content have the same time")
	}
}

func TestAChangedFileKeepsItsTime(t *testing.T) {
	root := checkout(t, map[string]string{"a.txt": "one", "b.txt": "two"})
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := timeOf(t, root, "a.txt")
	if err := os.Remove(filepath.Join(root, "b.txt")); err != nil {
		t.Fatal(err)
	}
	if err := SetFileTimes(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	if after := timeOf(t, root, "a.txt"); !after.Equal(before) {
		t.Errorf("the time of the changed file was %s and is %s", before, after)
	}
}

func TestWithoutGitTimesStay(t *testing.T) {
	root := t.TempDir()
	if err := SetFileTimes(t.Context(), root); err != nil {
		t.Error(err)
	}
}
