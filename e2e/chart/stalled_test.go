// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notStalled are reasons that stand in functions that stall, and never go with it.
var notStalled = []string{"Adopted", "Requested", "Deleting"}

// stalledReasons are the reasons that the release engines give to the condition Stalled: those
// of refusals, of Stall, and of functions that set it themselves.
func stalledReasons(t *testing.T) (reasons []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "controllers", "release"), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if stalls(n) {
					reasons = append(reasons, reasonsIn(n)...)
				}
			case *ast.CallExpr:
				if slices.Contains([]string{"Stall", "Refuse", "refuse"}, called(n)) && len(n.Args) > 0 {
					reasons = append(reasons, reasonsIn(n.Args[0])...)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(reasons)
	reasons = slices.DeleteFunc(slices.Compact(reasons), func(r string) bool { return slices.Contains(notStalled, r) })
	if len(reasons) < 12 {
		t.Fatalf("found only the reasons %v", reasons)
	}
	return reasons
}

func called(n *ast.CallExpr) string {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// stalls is whether a function sets the state to stalled, or makes an obstacle that does.
func stalls(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				found = found || ok && s.Sel.Name == "Stalled"
			}
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			found = found || ok && key.Name == "stalled"
		}
		return true
	})
	return found
}

func reasonsIn(n ast.Node) (reasons []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, isName := s.X.(*ast.Ident); isName && x.Name == "v1alpha1" {
				if reason, isReason := strings.CutPrefix(s.Sel.Name, "Reason"); isReason && reason != "" {
					reasons = append(reasons, reason)
				}
			}
		}
		return true
	})
	return reasons
}
