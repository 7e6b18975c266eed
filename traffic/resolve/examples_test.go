// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"bytes"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

// load reads the objects of an example, and fails for a field that does not exist.
func load(t *testing.T, file string) (*splitv1.TrafficSplit, map[string]*specsv1.HTTPRouteGroup) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var split *splitv1.TrafficSplit
	groups := map[string]*specsv1.HTTPRouteGroup{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		group := &specsv1.HTTPRouteGroup{}
		switch kind.Kind {
		case "TrafficSplit":
			split = &splitv1.TrafficSplit{}
			err = yaml.UnmarshalStrict(document, split)
		case "HTTPRouteGroup":
			err = yaml.UnmarshalStrict(document, group)
			groups[group.Name] = group
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return split, groups
}

func TestExamplesCanBeServed(t *testing.T) {
	port := corev1.ServicePort{Name: "http", Port: 80}
	services := map[string]*corev1.Service{
		"website":    service("website", "10.0.0.1", map[string]string{"app": "website"}, port),
		"website-v1": service("website-v1", "10.0.0.2", map[string]string{"app": "website", "v": "1"}, port),
		"website-v2": service("website-v2", "10.0.0.3", map[string]string{"app": "website", "v": "2"}, port),
	}
	for file, want := range map[string]traffic.Ability{
		"../../examples/ab-test/by-hand/trafficsplit.yaml": traffic.AbilityMatch,
		"../../examples/mirror/by-hand/trafficsplit.yaml":  traffic.AbilityMirror,
	} {
		split, groups := load(t, file)
		got, problems := resolve.Split(split, resolve.Known{Services: services, Groups: groups})
		if needs := got.Needs(); len(problems) > 0 || len(needs) != 1 || needs[0] != want {
			t.Errorf("%s needs %v and has the problems %v", file, needs, problems)
		}
	}
}
