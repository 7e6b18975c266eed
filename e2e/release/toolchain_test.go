// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// releaseGo is the release of Go that the Makefile names for what is published.
func releaseGo(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^RELEASE_GO := (go\d+\.\d+\.\d+)$`).FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("the Makefile names no release of Go")
	}
	return found[1]
}

func TestWhatIsPublishedIsBuiltWithTheReleaseOfGoThatTheMakefileNames(t *testing.T) {
	// The programs that a target calls: go says which toolchain it is asked for, curl that it reaches all.
	programs, record := t.TempDir(), filepath.Join(t.TempDir(), "toolchains")
	for name, script := range map[string]string{"go": `echo "$GOTOOLCHAIN" >> "$RECORD"`, "curl": "true"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]string{
		"images": releaseGo(t), "release": releaseGo(t), "vulnerabilities": releaseGo(t), "build": "of-the-machine", "unit": "of-the-machine",
	} {
		t.Run(target, func(t *testing.T) {
			command := exec.Command("make", "--directory", "../..", target, "VERSION=1.2.3", "REGISTRY=registry.example")
			command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "RECORD="+record, "GOTOOLCHAIN=of-the-machine", "MAKEFLAGS=")
			if printed, err := command.CombinedOutput(); err != nil {
				t.Fatalf("make: %v\n%s", err, printed)
			}
			got, err := os.ReadFile(record)
			if err != nil {
				t.Fatal("it calls no go: ", err)
			}
			if err := os.Remove(record); err != nil {
				t.Fatal(err)
			}
			if calls := slices.Compact(strings.Fields(string(got))); !slices.Equal(calls, []string{want}) {
				t.Errorf("it calls go with the toolchains %v, want %s", calls, want)
			}
		})
	}
}

func TestTheReleaseOfGoIsTheOneOfModuleAndDocuments(t *testing.T) {
	version := releaseGo(t)
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]; !strings.HasPrefix(version, "go"+minor+".") {
		t.Errorf("releases are built with %s, the module is of Go %s", version, minor)
	}
	for _, page := range []string{"../../SECURITY.md", "../../docs/release.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\bgo\d+\.\d+\.\d+\b`).FindAllString(string(text), -1)
		if got := slices.Compact(named); !slices.Equal(got, []string{version}) {
			t.Errorf("%s names the releases %v of Go, the Makefile %s", page, got, version)
		}
	}
}
