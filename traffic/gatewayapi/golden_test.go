// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/traffic"
)

// Each folder holds objects of a namespace (in.yaml), and the routes as the router
// leaves them, or why it refuses (out.yaml). What it changed is restored exactly.
func TestRoutes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newFixture(t, string(content), everything(), interceptor.Funcs{})
			state, problems := s.enact()
			golden.Check(t, strings.Replace(file, "in.yaml", "out.yaml", 1), s.result(state, problems))
			if traffic.Refused(problems) {
				return
			}
			for _, o := range state.Objects {
				if o.Condition != traffic.ObjectCurrent && o.Condition != traffic.ObjectForeign {
					t.Errorf("%s %s is %s after it was written", o.Kind, o.Name, o.Condition)
				}
			}
			s.checkRestored(state)
		})
	}
}

// result is what there is of routes, or why there is none.
func (s *fixture) result(state traffic.State, problems []traffic.Problem) string {
	s.Helper()
	var out []string
	for _, p := range problems {
		out = append(out, "# "+p.Condition+", "+p.Reason+": "+p.Message+"\n")
	}
	for _, o := range state.Objects {
		if o.Condition == traffic.ObjectAbsent {
			continue
		}
		text, err := yaml.Marshal(tidy(s.live(o.Kind, o.Name)).Object)
		if err != nil {
			s.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

// tidy leaves out what is not of interest.
func tidy(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	annotations := u.GetAnnotations()
	delete(annotations, AnnotationRecord)
	u.SetAnnotations(annotations)
	return u
}

// checkRestored restores everything and compares it with what there was.
func (s *fixture) checkRestored(state traffic.State) {
	s.Helper()
	target, _, _ := s.observe()
	for _, o := range state.Objects {
		if o.Changed {
			if err := s.router.Restore(s.Context(), target, o); err != nil {
				s.Error(err)
			}
		}
	}
	for _, before := range s.routes {
		after := s.live(before.GetKind(), before.GetName())
		after.SetResourceVersion("")
		if diff := cmp.Diff(before.Object, after.Object); diff != "" {
			s.Errorf("%s %s is not what it was (-before +after):\n%s", before.GetKind(), before.GetName(), diff)
		}
	}
}
