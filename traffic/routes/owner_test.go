// SPDX-License-Identifier: Apache-2.0

package routes_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

var gvk = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}

func TestARoutersObjectsAreKnownByTheirLabels(t *testing.T) {
	unnamed := maps.Clone(routes.Labels("web"))
	delete(unnamed, traffic.LabelProxy)
	for name, test := range map[string]struct {
		labels        map[string]string
		own, labelled bool
	}{
		"all labels":                       {routes.Labels("web"), true, true},
		"those of another split":           {routes.Labels("blog"), true, false},
		"without the split":                {unnamed, true, false},
		"the split alone":                  {map[string]string{traffic.LabelProxy: "web"}, true, false},
		"none":                             {nil, false, false},
		"another manager":                  {map[string]string{routes.LabelManager: "Helm", routes.LabelComponent: "route"}, false, false},
		"another component of the manager": {map[string]string{routes.LabelManager: "serin", routes.LabelComponent: "proxy"}, false, false},
	} {
		u := routes.Empty(gvk, "shop", "web")
		u.SetLabels(test.labels)
		if own, labelled := routes.IsOwn(u), routes.Labelled(u, "web"); own != test.own || labelled != test.labelled {
			t.Errorf("%s: own %t, labelled %t", name, own, labelled)
		}
	}
}

func TestASplitThatNamesNoRouterIsTheDefaultRouters(t *testing.T) {
	for name, test := range map[string]struct {
		router          string
		isDefault, want bool
	}{
		"its own name":       {"istio", false, true},
		"another name":       {"nginx", true, false},
		"none, the default":  {"", true, true},
		"none, no default":   {"", false, false},
		"its own by default": {"istio", true, true},
	} {
		split := &splitv1.TrafficSplit{}
		splitv1.EditRouting(split, func(r *splitv1.Routing) { r.Router = test.router })
		if got := routes.SelectedBy(split, "istio", test.isDefault); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAnnotationsWithoutAValueAreRemoved(t *testing.T) {
	u := routes.Empty(gvk, "shop", "web")
	routes.Annotate(u, map[string]string{"a": "1", "b": "2"})
	routes.Annotate(u, map[string]string{"a": "", "c": ""})
	if diff := cmp.Diff(map[string]string{"b": "2"}, u.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	routes.Annotate(u, map[string]string{"b": ""})
	if u.GetAnnotations() != nil {
		t.Errorf("annotations %v, want none", u.GetAnnotations())
	}
}

func TestANameThatIsNoLabelIsRefused(t *testing.T) {
	for length, refused := range map[int]bool{63: false, 64: true} {
		split := traffic.Split{}
		split.Name = strings.Repeat("x", length)
		if problems := routes.CheckName(split); (len(problems) > 0) != refused {
			t.Errorf("%d characters: %v", length, problems)
		}
	}
}

// Whatever was observed, nothing is written when there is something else by now.
func TestOnlyTheObjectThatWasObservedIsWritten(t *testing.T) {
	target := traffic.Target{Split: &splitv1.TrafficSplit{}}
	target.Split.Namespace, target.Split.Name = "shop", "web"
	live := routes.Empty(gvk, "shop", "web")
	live.SetUID("1")
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(live).Build()
	objects := routes.Objects{Reader: c, Writer: c}
	there, err := objects.Get(t.Context(), gvk, "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{"rules": []any{"x"}}
	of := func(uid types.UID, version string) traffic.Object {
		return traffic.Object{GroupVersionKind: gvk, Name: "web", UID: uid, ResourceVersion: version}
	}
	for name, object := range map[string]traffic.Object{
		"none was there":      of("", ""),
		"another one":         of("2", there.GetResourceVersion()),
		"a version before it": of("1", "1"),
	} {
		if err := objects.ApplyOwn(t.Context(), target, object, spec); !apierrors.IsConflict(err) {
			t.Errorf("%s: error %v, want a conflict", name, err)
		}
	}
	if err := objects.ApplyOwn(t.Context(), target, routes.Describe(there), spec); err != nil {
		t.Fatal(err)
	}
	gone := of("1", there.GetResourceVersion())
	gone.Name = "gone"
	if err := objects.ApplyOwn(t.Context(), target, gone, spec); !apierrors.IsConflict(err) {
		t.Errorf("one that is gone: error %v, want a conflict", err)
	}
	made := traffic.Object{GroupVersionKind: gvk, Name: "made"}
	if err := objects.ApplyOwn(t.Context(), target, made, spec); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "made"} {
		u, err := objects.Get(t.Context(), gvk, "shop", name)
		if err != nil || u == nil || !routes.Labelled(u, "web") || routes.Digest(u.Object["spec"]) != routes.Digest(spec) {
			t.Errorf("%s is %v, %v", name, u, err)
		}
	}
}
