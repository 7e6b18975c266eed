// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/serin-dev/serin/config/golden"
)

// table lists each value with its default and the comments of values.yaml: its own, or those
// of what it is in.
func table(t *testing.T) string {
	t.Helper()
	document, err := yaml.Parse(string(read(t, filepath.Join(dir, "values.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("| value | default | meaning |\n| --- | --- | --- |\n")
	rows(t, &out, "", document.YNode())
	return out.String()
}

func rows(t *testing.T, out *strings.Builder, path string, values *yaml.Node) {
	t.Helper()
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		name := path + key.Value
		meaning := meaningOf(key)
		if isGroup := value.Kind == yaml.MappingNode && value.Style != yaml.FlowStyle && len(value.Content) > 0; isGroup {
			if meaning != "" {
				out.WriteString("| **`" + name + "`** | | " + meaning + " |\n")
			}
			rows(t, out, name+".", value)
			continue
		}
		var decoded any
		if err := value.Decode(&decoded); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("| `" + name + "` | `" + string(text) + "` | " + meaning + " |\n")
	}
}

// meaningOf is the last paragraph of the comment above a key, on one line.
func meaningOf(key *yaml.Node) string {
	comment := key.HeadComment
	if i := strings.LastIndex(comment, "\n\n"); i >= 0 {
		comment = comment[i+2:]
	}
	var words []string
	for line := range strings.SplitSeq(comment, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if line != "" && !strings.HasPrefix(line, "SPDX") {
			words = append(words, line)
		}
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", `\|`)
}

func TestTheReadmeHasEveryValue(t *testing.T) {
	t.Parallel()
	file := filepath.Join(dir, "README.md")
	before, after, found := strings.Cut(string(read(t, file)), "## Values\n\n")
	if !found {
		t.Fatal("the README has no heading Values")
	}
	want := table(t)
	if *golden.Update {
		if err := os.WriteFile(file, []byte(before+"## Values\n\n"+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("write the table with -update (-want +got):\n%s", diff)
	}
}
