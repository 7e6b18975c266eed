// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a block of JSON in the page, and the golden file that it shows.
var example = regexp.MustCompile("(?s)<!-- testdata: ([a-z-]+) -->\n```json\n(.*?)```\n")

func TestThePageShowsWhatIsSent(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "hooks-and-notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(page), -1)
	if blocks := strings.Count(string(page), "```json"); len(examples) != blocks || blocks == 0 {
		t.Fatalf("%d of %d blocks say what they show", len(examples), blocks)
	}
	for _, e := range examples {
		sent, err := os.ReadFile(filepath.Join("testdata", e[1]+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(sent), e[2]); diff != "" {
			t.Errorf("%s (-sent +page):\n%s", e[1], diff)
		}
	}
	for _, kind := range kinds {
		if name := cdEventType(kind); !strings.Contains(string(page), strings.Split(name, ".0.")[0]) &&
			!strings.Contains(string(page), "`."+strings.ToLower(string(kind))+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}
