// SPDX-License-Identifier: Apache-2.0

package serin_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a Markdown link or an image; its first group is the target.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|<img[^>]+src="([^"]+)"`)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	for _, file := range sources(t, ".md") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(content), -1) {
			target, err := url.Parse(match[1] + match[2])
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if target.Scheme != "" || target.Path == "" {
				continue // another site, or a heading of the same page
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target.Path)); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s links to %s, which is not there", file, target.Path)
			}
		}
	}
}

func TestEverySourceFileNamesItsLicence(t *testing.T) {
	const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"
	for _, file := range sources(t, ".go") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(content, []byte(licence)) && !strings.Contains(file, "zz_generated") {
			t.Errorf("%s does not begin with %q and an empty line", file, strings.TrimSpace(licence))
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	folders := map[string]bool{}
	for _, file := range sources(t, ".go") {
		if folder := filepath.Dir(file); folder != "." && !strings.HasSuffix(file, "_test.go") {
			folders[folder] = true
		}
	}
	for folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "doc.go")); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has no doc.go: say there what the package is for and what it must not do", folder)
		}
	}
}
