// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/config/golden"
)

func read(t *testing.T, file, text string) *source.Set {
	t.Helper()
	set := source.NewSet()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if errors.Is(err, io.EOF) {
			return set
		}
		if err != nil {
			t.Fatal(err)
		}
		set.Add(file, content)
	}
}

// TestGolden converts each testdata/TOOL/NAME.in.yaml into NAME.out.yaml and NAME.report.txt.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "*.in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatal(inputs, err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".in.yaml"), func(t *testing.T) {
			text, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			set := read(t, strings.Replace(filepath.Base(input), ".in", "", 1), string(text))
			out, err := migration.Convert(set)
			if err != nil {
				t.Fatal(err)
			}
			var report bytes.Buffer
			for _, i := range set.Report.Items {
				report.WriteString(i.String() + "\n")
			}
			texts := make([]string, 0, len(out))
			for _, f := range out {
				texts = append(texts, f.Text)
			}
			golden.Check(t, strings.Replace(input, ".in.yaml", ".out.yaml", 1), strings.Join(texts, "---\n"))
			golden.Check(t, strings.Replace(input, ".in.yaml", ".report.txt", 1), report.String())
		})
	}
}
