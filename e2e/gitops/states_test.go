// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bufio"
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/schedule"
)

const root = "../.."

// state is an object in one state, what names it, and of a Rollout the user actions that
// Serin would apply now.
type state struct {
	name     string
	object   *unstructured.Unstructured
	possible []string
}

// recorded reads the states that a planner's tests wrote: objects, each below a comment.
func recorded(t *testing.T, planner string) []state {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, planner, "testdata", "states.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var states []state
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, rest, _ := strings.Cut(strings.TrimPrefix(string(document), "# "), "\n")
		possible, _, _ := strings.Cut(strings.TrimPrefix(rest, "# possible: "), "\n")
		text, err := utilyaml.ToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		states = append(states, state{name, o, strings.Fields(possible)})
	}
	if len(states) < 10 {
		t.Fatalf("%d states of %s", len(states), planner)
	}
	return states
}

// condition is a line of the golden logs of TrafficSplits.
var condition = regexp.MustCompile(`^  (Accepted|ResolvedRefs|Programmed)=(True|False|Unknown)@(\d+) \((\w+): (.*)\)$`)

// recordedSplits are the TrafficSplits of the golden logs, one for each reason of a condition.
func recordedSplits(t *testing.T) []state {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(root, "controllers/trafficsplit/testdata/*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var states []state
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		var name string
		split := newSplit()
		for line := range strings.SplitSeq(string(content), "\n") {
			m := condition.FindStringSubmatch(line)
			if m == nil {
				if name != "" && !seen[name] {
					seen[name] = true
					states = append(states, state{name: name, object: object(t, split)})
				}
				name, split = "", newSplit()
				continue
			}
			generation, err := strconv.ParseInt(m[3], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			name += m[1] + "=" + m[4] + " "
			split.Generation = max(split.Generation, generation)
			split.Status.Conditions = append(split.Status.Conditions, metav1.Condition{
				Type: m[1], Status: metav1.ConditionStatus(m[2]), ObservedGeneration: generation, Reason: m[4], Message: m[5],
			})
		}
	}
	if len(states) < 5 {
		t.Fatalf("%d states of TrafficSplits in the golden logs", len(states))
	}
	return states
}

func newSplit() *splitv1.TrafficSplit {
	return &splitv1.TrafficSplit{
		TypeMeta:   metav1.TypeMeta{APIVersion: splitv1.GroupVersion.String(), Kind: "TrafficSplit"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
	}
}

// freezes are Freezes with the status that Serin gives them.
func freezes(t *testing.T) []state {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var states []state
	for name, spec := range map[string]v1alpha1.FreezeSpec{
		v1alpha1.ReasonActive:      {Reason: "audit"},
		v1alpha1.ReasonScheduled:   {Reason: "audit", From: new(metav1.NewTime(now.Add(time.Hour)))},
		v1alpha1.ReasonEnded:       {Reason: "audit", Until: new(metav1.NewTime(now.Add(-time.Hour)))},
		v1alpha1.ReasonInvalidSpec: {Reason: "audit", Recurring: &v1alpha1.RecurringFreeze{TimeZone: "Mars/Olympus", Start: "@daily", Duration: "1h"}},
	} {
		f := &v1alpha1.Freeze{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Freeze"},
			ObjectMeta: metav1.ObjectMeta{Name: "audit", Generation: 1}, Spec: spec,
		}
		f.Status = schedule.FreezeStatus(f, now)
		if got := f.Status.Conditions[0].Reason; got != name {
			t.Fatalf("the Freeze that should be %s is %s", name, got)
		}
		states = append(states, state{name: name, object: object(t, f)})
	}
	return states
}

func object(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// reasons are the values of the constants of a package whose names begin with Reason.
func reasons(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") && len(spec.Values) == 1 {
				if value, ok := spec.Values[0].(*ast.BasicLit); ok {
					text, err := strconv.Unquote(value.Value)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, text)
				}
			}
			return true
		})
	}
	if len(out) < 10 {
		t.Fatalf("%s has %d reasons", folder, len(out))
	}
	return out
}

// conditionOf is a condition of an object; empty when there is none.
func conditionOf(o *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return map[string]any{}
}
