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
