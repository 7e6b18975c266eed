// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// mostFiles is how many files a package may have, without tests and generated files: so many
// names can still be read at a glance. One with more holds several ideas, or its files are crumbs.
const mostFiles = 16

// mostMethods is how many methods a type of the packages that decide may have. One with more is read
// as a whole or not at all.
const mostMethods = 40

// method is the line that begins one, with its type.
var method = regexp.MustCompile(`(?m)^func \(\w+ \*?(\w+)(?:\[\w+\])?\) \w+`)

func TestTypesThatDecideHaveFewMethods(t *testing.T) {
	count := map[string]int{}
	for _, file := range sources(t, ".go") {
		folder := path.Dir(file)
		if decides := strings.HasPrefix(folder, "controllers/release") || folder == "controllers/trafficsplit/plan"; !decides || strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range method.FindAllSubmatch(content, -1) {
			count[folder+"."+string(found[1])]++
		}
	}
	if count["controllers/trafficsplit/plan.Observation"] == 0 {
		t.Error("no method of Observation was found: the test proves nothing")
	}
	for name, n := range count {
		if n > mostMethods {
			t.Errorf("%s has %d methods; at most %d: make functions of those that one caller needs", name, n, mostMethods)
		}
	}
}

// generated is the line by which tools know a file that no one writes (go help generate).
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestPackagesHaveFewFiles(t *testing.T) {
	count := map[string]int{}
	for _, file := range sources(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if head, _, _ := bytes.Cut(content, []byte("\npackage ")); !generated.Match(head) {
			count[path.Dir(file)]++
		}
	}
	for folder, n := range count {
		if n > mostFiles {
			t.Errorf("%s has %d files; at most %d: give an idea that stands on its own a package of its own, or put files together that say one thing",
				folder, n, mostFiles)
		}
	}
}
