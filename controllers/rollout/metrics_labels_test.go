// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonsOf finds the constants of the API that the planner hands over as the
// first argument of one of these methods, or assigns to the reason of its state.
func reasonsOf(t *testing.T, folder string, methods ...string) (names []string) {
	t.Helper()
	for _, file := range parse(t, folder) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(methods, f.Sel.Name) && len(n.Args) > 0 {
					names = appendReason(names, n.Args[0])
				}
			case *ast.AssignStmt:
				to, ok := n.Lhs[0].(*ast.SelectorExpr)
				if ok && to.Sel.Name == "reason" && slices.Contains(methods, "say") {
					names = appendReason(names, n.Rhs[0])
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func appendReason(names []string, e ast.Expr) []string {
	s, ok := e.(*ast.SelectorExpr)
	if ok && strings.HasPrefix(s.Sel.Name, "Reason") {
		return append(names, s.Sel.Name)
	}
	return names
}

// parse reads the sources of a folder without its tests.
func parse(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("%s: %v", folder, fs.ErrNotExist)
	}
	return files
}

// valuesOf are the string constants of a folder, by name.
func valuesOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, file := range parse(t, folder) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				values[spec.Names[0].Name] = value
			}
			return true
		})
	}
	return values
}

func TestEveryReasonThatThePlannerGivesHasALabel(t *testing.T) {
	constants := valuesOf(t, filepath.Join("..", "..", "api", "v1alpha1"))
	for _, test := range []struct {
		what    string
		list    []string
		methods []string
		atLeast int
	}{
		{what: "states", list: states, methods: []string{"say", "wait"}, atLeast: 20},
		{what: "causes", list: causes, methods: []string{"reject"}, atLeast: 5},
	} {
		names := reasonsOf(t, "plan", test.methods...)
		if len(names) < test.atLeast {
			t.Errorf("found only %v in the planner: the test looks for the wrong methods", names)
		}
		for _, name := range names {
			if value := constants[name]; value == "" || !slices.Contains(test.list, value) {
				t.Errorf("the list of %s in metrics_labels.go is without v1alpha1.%s, which is then counted as %s", test.what, name, other)
			}
		}
	}
}

func TestLabelsAreNamedOnce(t *testing.T) {
	for _, list := range [][]string{states, outcomes, causes, verdicts, interventions} {
		sorted := slices.Sorted(slices.Values(list))
		if n := len(slices.Compact(sorted)); n != len(list) || slices.Contains(list, other) {
			t.Errorf("%d different of %v, without %s", n, list, other)
		}
	}
}
