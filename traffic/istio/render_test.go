// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// fixture is what an in.yaml holds: objects of one namespace.
type fixture struct {
	split  *splitv1.TrafficSplit
	known  resolve.Known
	routes []*unstructured.Unstructured
	rules  []rule
}

func parseFixture(tb testing.TB, content string) fixture {
	tb.Helper()
	s := fixture{known: resolve.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}}}
	for document := range strings.SplitSeq(content, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			tb.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &u.Object); err != nil {
			tb.Fatal(err)
		}
		into := func(object any) {
			tb.Helper()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
				tb.Fatal(err)
			}
		}
		switch u.GetKind() {
		case "TrafficSplit":
			s.split = &splitv1.TrafficSplit{}
			into(s.split)
		case "Service":
			service := &corev1.Service{}
			into(service)
			s.known.Services[service.Name] = service
		case "HTTPRouteGroup":
			group := &specsv1.HTTPRouteGroup{}
			into(group)
			s.known.Groups[group.Name] = group
		case "VirtualService":
			s.routes = append(s.routes, u)
		case "DestinationRule":
			spec, _ := u.Object["spec"].(map[string]any)
			s.rules = append(s.rules, rule{name: u.GetName(), spec: spec})
		default:
			tb.Fatalf("the scheme has no kind %q", u.GetKind())
		}
	}
	return s
}

func (s fixture) resolve(tb testing.TB) traffic.Split {
	tb.Helper()
	split, problems := resolve.Split(s.split, s.known)
	if traffic.Refused(problems) {
		tb.Fatalf("the split is refused: %v", problems)
	}
	return split
}

// outcome is what an out.yaml holds.
type outcome struct {
	Routes []outcomeOf `json:"routes,omitempty"`
	Rules  []outcomeOf `json:"rules,omitempty"`
}

type outcomeOf struct {
	Name    string         `json:"name"`
	Refused string         `json:"refused,omitempty"`
	Spec    map[string]any `json:"spec,omitempty"`
}

// render is what the router makes of a fixture. A VirtualService with the annotation
// test/only is rendered for the route of that name only.
func (s fixture) render(tb testing.TB) outcome {
	tb.Helper()
	split := s.resolve(tb)
	var out outcome
	for _, u := range s.routes {
		spec, _ := u.Object["spec"].(map[string]any)
		o := outcomeOf{Name: u.GetName()}
		rendered, _, err := Render(spec, split, only(u))
		if o.Spec = rendered; err != nil {
			o.Refused = err.Error()
		}
		out.Routes = append(out.Routes, o)
	}
	if len(s.routes) == 0 {
		o := outcomeOf{Name: "of its own"}
		spec, err := MakeMeshSpec(split, s.known.Services[split.Root])
		if o.Spec = spec; err != nil {
			o.Refused = err.Error()
		}
		out.Routes = append(out.Routes, o)
	}
	rules, unfit := makeRules(s.rules, split)
	if unfit != nil {
		out.Rules = append(out.Rules, outcomeOf{Name: unfit.name, Refused: unfit.why})
	}
	for _, r := range rules {
		out.Rules = append(out.Rules, outcomeOf{Name: r.name, Spec: r.spec})
	}
	return out
}

// only are the routes that a fixture names.
func only(u *unstructured.Unstructured) []string {
	if name := u.GetAnnotations()["test/only"]; name != "" {
		return []string{name}
	}
	return nil
}

func goldens(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no golden files: %v", err)
	}
	return files
}

func readFixture(tb testing.TB, file string) fixture {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return parseFixture(tb, string(content))
}

func TestRender(t *testing.T) {
	for _, in := range goldens(t) {
		folder := filepath.Dir(in)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			got, err := yaml.Marshal(readFixture(t, in).render(t))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(folder, "out.yaml")
			golden.Check(t, file, string(got))
		})
	}
}

func TestWhatWasRenderedIsRestoredExactly(t *testing.T) {
	for _, in := range goldens(t) {
		s := readFixture(t, in)
		for _, u := range s.routes {
			spec, _ := u.Object["spec"].(map[string]any)
			before := runtime.DeepCopyJSON(spec)
			split := s.resolve(t)
			rendered, record, err := Render(spec, split, only(u))
			if err != nil {
				continue // it is refused, as its golden file says, so there is nothing to restore
			}
			t.Run(filepath.Base(filepath.Dir(in))+"/"+u.GetName(), func(t *testing.T) {
				if diff := cmp.Diff(before, spec); diff != "" {
					t.Fatalf("what was given is changed:\n%s", diff)
				}
				text, err := record.Encode()
				if err != nil {
					t.Fatal(err)
				}
				read, err := ParseRecord(text)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(spec, Original(rendered, split.Namespace, read)); diff != "" {
					t.Errorf("(-original +restored)\n%s", diff)
				}
			})
		}
	}
}

func TestConnectionsThatPassUnreadAreNeitherMatchedNorMirrored(t *testing.T) {
	mirrored := shopSplit(false)
	mirrored.Mirror = &traffic.Mirror{Service: "web-next", Percent: 10}
	for name, test := range map[string]struct {
		split   traffic.Split
		refused bool
	}{
		"shared by weights": {shopSplit(false), false}, "with a mirror": {mirrored, true}, "limited to some requests": {shopSplit(true), true},
	} {
		for _, section := range []string{sectionTLS, sectionTCP} {
			_, _, err := Render(specOf(t, "{"+section+": [{route: [{destination: {host: web}}]}]}"), test.split, nil)
			if (err != nil) != test.refused {
				t.Errorf("%s route, %s: error %v, want it refused: %t", section, name, err, test.refused)
			}
		}
	}
}
