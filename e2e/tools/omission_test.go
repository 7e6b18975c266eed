// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makeOmission is a tool that imports k8s.io/utils/ptr and is built with a substitute.
func makeOmission(t *testing.T) (*Builder, Tool) {
	t.Helper()
	builder, tool := makeTool(t, "package hello\n")
	const module = "k8s.io/utils"
	version := versions(t, filepath.Join("..", "go.mod"))[module]
	sums, err := os.ReadFile(filepath.Join("..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(builder.Source, tool.Name, "cmd"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"go.mod":      "module hello\n\ngo 1.26.0\n\nrequire " + module + " " + version + "\n",
		"go.sum":      string(sums),
		"cmd/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"k8s.io/utils/ptr\"\n)\n\nfunc main() { fmt.Println(*ptr.To(\"the module's\")) }\n",
		"ptr.go":      "package ptr\n\nfunc To(s string) *string {\n\ts = \"the substitute's\"\n\treturn &s\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(builder.Source, tool.Name, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(builder.Source, tool.Name, "main.go")); err != nil {
		t.Fatal(err)
	}
	tool.Package = "./cmd"
	tool.Without = &Omission{Module: module, Folder: "ptr", Substitute: "ptr.go"}
	return builder, tool
}

func TestAToolIsBuiltWithoutAPackage(t *testing.T) {
	builder, tool := makeOmission(t)
	for _, want := range []string{"the substitute's", "the module's"} {
		set, err := builder.Build(t.Context(), tool)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := exec.CommandContext(t.Context(), set.Path("hello")).Output()
		if err != nil || strings.TrimSpace(string(printed)) != want {
			t.Errorf("printed %q (%v), want %q", printed, err, want)
		}
		tool.Without = nil
	}
	left, err := filepath.Glob(filepath.Join(builder.Cache, "*.source"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestWhatCannotBeLeftOutIsNamedAndLeavesNothing(t *testing.T) {
	builder, tool := makeOmission(t)
	for _, test := range []struct {
		name string
		with Omission
		want string
	}{
		{"no such module", Omission{Module: "k8s.io/other", Folder: "ptr", Substitute: "ptr.go"}, "k8s.io/other"},
		{"no such folder", Omission{Module: "k8s.io/utils", Folder: "none", Substitute: "ptr.go"}, "no folder none"},
		{"no such file", Omission{Module: "k8s.io/utils", Folder: "ptr", Substitute: "other.go"}, "other.go"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool.Without = &test.with
			if _, err := builder.Build(t.Context(), tool); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that names %s", err, test.want)
			}
			left, err := filepath.Glob(filepath.Join(builder.Cache, "hello-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left in the cache: %v, %v", left, err)
			}
		})
	}
}
