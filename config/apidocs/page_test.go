// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const folder = "../../docs/reference"

func TestThePagesSayWhatTheSchemasSay(t *testing.T) {
	want, err := pagesOf("../crd")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
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
		t.Errorf("%s is stale; run make generate-docs (-schema +page):\n%s", folder, diff)
	}
}

// What users look up first, as the types say it.
func TestAPageHasTypesDefaultsLimitsAndRules(t *testing.T) {
	pages, err := pagesOf("../crd")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## spec.strategy.steps[]\n",
		"* **`weight`**: integer, 0 to 100, required\n",
		"* **`steps`**: list of object, 1 to 50 entries, [fields](#specstrategysteps)\n",
		"The API server refuses what does not follow these rules:\n",
	} {
		if !strings.Contains(pages["rollout.md"], want) {
			t.Errorf("the page of Rollouts does not say %q", want)
		}
	}
}
