// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"regexp"
	"strings"
	"testing"
)

// function begins a block that defines functions of the shell.
var function = regexp.MustCompile(`^\w+\(\) \{`)

// beginning is what the first section of the page about Rollouts gives its readers:
// files, and functions of the shell.
func beginning(t *testing.T) (files map[string]string, functions string) {
	t.Helper()
	files = map[string]string{}
	var shell strings.Builder
	for _, b := range page(t, "rollout.md")[0].blocks {
		if name := fileName.FindStringSubmatch(b.text); b.kind == "yaml" && name != nil {
			files[name[1]] = b.text
		}
		if b.kind == "sh" && function.MatchString(b.text) {
			shell.WriteString(b.text)
		}
	}
	if len(files) != 2 || shell.Len() == 0 {
		t.Fatalf("the page begins with %d files and the functions %q", len(files), shell.String())
	}
	return files, shell.String()
}

func TestThePageAboutRolloutsCanBeFollowed(t *testing.T) {
	t.Parallel()
	files, functions := beginning(t)
	for i, s := range page(t, "rollout.md") {
		t.Run(s.heading, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, files)
			r.functions = functions
			r.begun = i == 0 // the first section says itself how to begin
			r.play(s)
		})
	}
}
