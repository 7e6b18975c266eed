// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/serin-dev/serin/config/golden"
)

const folder = "../../docs/reference"

func TestThePagesSayWhatTheSchemasSay(t *testing.T) {
	want, err := pagesOf("../crd")
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckDocs(t, folder, "*.md", want)
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
