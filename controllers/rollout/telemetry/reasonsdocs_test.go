// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Users meet every reason of the API and look it up.
func TestThePageExplainsEveryReason(t *testing.T) {
	var pages []byte
	for _, name := range []string{"rollout.md", "how-to/failed-analysis.md", "canaryrelease.md", "schedule.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page...)
	}
	constants := valuesOf(t, filepath.Join("..", "..", "..", "api", "v1alpha1"))
	for _, name := range slices.Sorted(maps.Keys(constants)) {
		described := strings.HasPrefix(name, "Reason") || strings.HasPrefix(name, "Condition") || strings.HasPrefix(name, "Outcome")
		if described && !strings.Contains(string(pages), "`"+constants[name]+"`") {
			t.Errorf("none of the pages about states explains %s", constants[name])
		}
	}
}

// Events are few, so that users read them: the page says what each means.
func TestThePageListsEveryEvent(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "rollout.md"))
	if err != nil {
		t.Fatal(err)
	}
	constants := valuesOf(t, filepath.Join("..", "..", "..", "api", "v1alpha1"))
	reasons := []string{"ActionFailed"}
	for _, file := range parse(t, engine) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Note" {
				return true
			}
			switch reason := call.Args[1].(type) {
			case *ast.BasicLit:
				reasons = append(reasons, strings.Trim(reason.Value, `"`))
			case *ast.SelectorExpr:
				reasons = append(reasons, constants[reason.Sel.Name])
			default: // the name of a user action
				reasons = append(reasons, string(v1alpha1.ControlPromote), string(v1alpha1.ControlSkip), string(v1alpha1.ControlRetry))
			}
			return true
		})
	}
	if len(reasons) < 10 {
		t.Errorf("found only %v in the planner: the test looks for the wrong method", reasons)
	}
	for _, reason := range reasons {
		if row := regexp.MustCompile("(?m)^\\| [^|]*`" + reason + "`[^|]* \\| (Normal|Warning) \\|"); !row.Match(page) {
			t.Errorf("docs/rollout.md does not list the event %s", reason)
		}
	}
}
