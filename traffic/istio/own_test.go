// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// strip takes the label with the split's name from an object.
func strip(t *testing.T, api client.Client, kind, name string) {
	t.Helper()
	u := get(t, api, kind, name)
	labels := u.GetLabels()
	delete(labels, traffic.LabelProxy)
	u.SetLabels(labels)
	if err := api.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func TestAnOwnObjectWithoutTheNameOfItsSplitIsStillItsOwn(t *testing.T) {
	target := shopTarget("")
	target.Split.Spec.Service = "web"
	r, api := testRouter(t, interceptor.Funcs{}, object(t, kindRule, "web", "{host: web}"))
	r.apply(t, target)
	seen := r.must(t, target)
	if len(seen) != 3 {
		t.Fatalf("objects %+v, want two rules and a VirtualService", seen)
	}
	for _, o := range seen {
		strip(t, api, o.Kind, o.Name)
	}
	for _, o := range r.must(t, target) {
		if o.Condition != traffic.ObjectOutdated {
			t.Errorf("%s %s is %s", o.Kind, o.Name, o.Condition)
		}
	}
	r.apply(t, target)
	for _, o := range seen {
		if name := get(t, api, o.Kind, o.Name).GetLabels()[traffic.LabelProxy]; name != "web" {
			t.Errorf("%s %s has the label %q", o.Kind, o.Name, name)
		}
		strip(t, api, o.Kind, o.Name)
	}
	// The split is gone with all that it said, and so is the rule that was copied.
	if err := api.Delete(t.Context(), get(t, api, kindRule, "web")); err != nil {
		t.Fatal(err)
	}
	gone := traffic.Target{Split: &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}}
	for _, o := range r.must(t, gone) {
		if o.Patched || o.Condition != traffic.ObjectCurrent {
			t.Errorf("%+v can't be deleted", o)
		}
	}
	if left := r.must(t, gone); len(left) != 3 {
		t.Errorf("objects %+v, want all three, so that they are deleted", left)
	}
	other := traffic.Target{Split: &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "shop"}}}
	if theirs := r.must(t, other); len(theirs) != 0 {
		t.Errorf("another split has %+v", theirs)
	}
}

func TestWhichSplitMadeAnObject(t *testing.T) {
	unnamed := routes.Labels("web")
	delete(unnamed, traffic.LabelProxy)
	for name, test := range map[string]struct {
		kind, name string
		labels     map[string]string
		want       bool
	}{
		"a route with the label of the split":         {kindVirtualService, "any", map[string]string{traffic.LabelProxy: "web"}, true},
		"a route with the label of another":           {kindVirtualService, ownName("web"), map[string]string{traffic.LabelProxy: "blog"}, false},
		"a route without a label":                     {kindVirtualService, ownName("web"), nil, false},
		"a route that lost the label, by its name":    {kindVirtualService, ownName("web"), unnamed, true},
		"such a route with the name of another split": {kindVirtualService, ownName("blog"), unnamed, false},
		"a rule that lost the label, by its name":     {kindRule, ruleName("web", "web", "web-stable"), unnamed, true},
		"such a rule with the name of another split":  {kindRule, ruleName("blog", "web", "web-stable"), unnamed, false},
		"such a rule with a name that no split gives": {kindRule, "web-stable-" + short("web") + "-" + short("web"), unnamed, false},
		"a rule with the label and any name":          {kindRule, "any", routes.Labels("web"), true},
	} {
		u := object(t, test.kind, test.name, "{}")
		u.SetLabels(test.labels)
		if got := madeFor(u, "web"); got != test.want {
			t.Errorf("%s: made for it is %t, want %t", name, got, test.want)
		}
	}
}
