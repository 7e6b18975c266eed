// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// check is an entry of healthCheckExprs of a Kustomization.
type check struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

// checks are those of the example, by kind.
type checks map[string]check

func readChecks(t *testing.T) checks {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "examples", "gitops", "flux.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := checks{}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var k struct {
			Spec struct {
				HealthCheckExprs []check `json:"healthCheckExprs"`
			} `json:"spec"`
		}
		if err := documents.Decode(&k); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range k.Spec.HealthCheckExprs {
			out[c.Kind] = c
		}
	}
}

// status is what Flux makes of an object, by the rules of its RFC 0009: another generation
// is in progress, then the expressions in this order, and in progress when none holds.
func (c checks) status(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	check := c[o.GetKind()]
	if check.APIVersion != o.GetAPIVersion() || check.Current == "" {
		t.Fatalf("no check for %s", o.GroupVersionKind())
	}
	observed, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case found && observed != o.GetGeneration():
		return "InProgress"
	case holds(t, check.InProgress, o):
		return "InProgress"
	case holds(t, check.Failed, o):
		return "Failed"
	case holds(t, check.Current, o):
		return "Current"
	}
	return "InProgress"
}

// holds evaluates an expression in the environment that Flux makes: it is not compiled, so
// that a field that is not there is an error at run time.
func holds(t *testing.T, expression string, o *unstructured.Unstructured) bool {
	t.Helper()
	if expression == "" {
		return false
	}
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(parsed)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.ContextEval(t.Context(), o.Object)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	yes, ok := value.Value().(bool)
	if !ok {
		t.Fatalf("%s is a %s", expression, value.Type())
	}
	return yes
}
