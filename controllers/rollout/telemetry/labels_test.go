// SPDX-License-Identifier: Apache-2.0

package telemetry

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

// engine is the folder of what decides about a Rollout.
var engine = filepath.Join("..", "..", "release")

// reasonsOf are the names of the reasons that are given to some functions, or written into
// literals of some types. Those that say the state also give the reasons that it is assigned.
func reasonsOf(t *testing.T, folder string, givers ...string) (names []string) {
	t.Helper()
	for _, file := range parse(t, folder) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if slices.Contains(givers, nameOf(n.Fun)) {
					for _, arg := range n.Args {
						names = appendReason(names, arg)
					}
				}
			case *ast.AssignStmt:
				if nameOf(n.Lhs[0]) == "Reason" && slices.Contains(givers, "Say") {
					names = appendReason(names, n.Rhs[0])
				}
			case *ast.CompositeLit:
				if slices.Contains(givers, nameOf(n.Type)) {
					for _, element := range n.Elts {
						if pair, ok := element.(*ast.KeyValueExpr); ok {
							element = pair.Value
						}
						names = appendReason(names, element)
					}
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nameOf is the name of a function, a method or a type.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func appendReason(names []string, e ast.Expr) []string {
	s, ok := e.(*ast.SelectorExpr)
	if ok && s.Sel.Name != "Reason" && strings.HasPrefix(s.Sel.Name, "Reason") {
		return append(names, s.Sel.Name)
	}
	return names
}

// parse reads the sources of a folder and of those in it, without tests and without what
// decides about CanaryReleases.
func parse(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob(filepath.Join(folder, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, below...) {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(filepath.Dir(name)) == "helmrelease" {
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
	constants := valuesOf(t, filepath.Join("..", "..", "..", "api", "v1alpha1"))
	for _, test := range []struct {
		what    string
		list    []string
		givers  []string
		atLeast int
	}{
		{what: "states", list: states, givers: []string{"Say", "Wait", "Stall", "Refuse", "Obstacle"}, atLeast: 20},
		{what: "causes", list: causes, givers: []string{"Reject", "Cause"}, atLeast: 5},
	} {
		names := reasonsOf(t, engine, test.givers...)
		if len(names) < test.atLeast {
			t.Errorf("found only %v in the planner: the test looks for the wrong functions", names)
		}
		for _, name := range names {
			if value := constants[name]; value == "" || !slices.Contains(test.list, value) {
				t.Errorf("the list of %s in labels.go is without v1alpha1.%s, which is then counted as %s", test.what, name, other)
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
