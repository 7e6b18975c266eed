// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestRoutesWithoutTheirRecordAreRestoredByWhatTheSplitSays(t *testing.T) {
	withTLS := website + "tls:\n  - route: [{destination: {host: web, port: {number: 80}}, weight: 3}, {destination: {host: archive}, weight: 7}]\n"
	shares := strings.NewReplacer("weight: 3", "weight: 30", "weight: 7", "weight: 70") // as large as when they were written
	for name, test := range map[string]struct {
		spec    string
		limited bool
		lose    func(annotations map[string]string)
	}{
		"the record is removed":                    {spec: withTLS, lose: func(a map[string]string) { delete(a, annotationOriginal) }},
		"the record can't be read":                 {spec: withTLS, lose: func(a map[string]string) { a[annotationOriginal] = "{" }},
		"the name of the split is lost":            {spec: withTLS, lose: func(a map[string]string) { delete(a, traffic.AnnotationSplit) }},
		"the record of a limited split is removed": {spec: website, limited: true, lose: func(a map[string]string) { delete(a, annotationOriginal) }},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{}, object(t, kindVirtualService, "website", test.spec))
			target := shopTarget("VirtualService/website")
			target.Split.Spec = splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{{Service: "web-stable"}, {Service: "web-canary"}}}
			if test.limited {
				target.Resolved = shopSplit(true)
				target.Resolved.Ports[0].Default = nil // the others go on to the root Service
			}
			r.apply(t, target)
			written := get(t, api, kindVirtualService, "website")
			annotations := written.GetAnnotations()
			test.lose(annotations)
			written.SetAnnotations(annotations)
			if err := api.Update(t.Context(), written); err != nil {
				t.Fatal(err)
			}
			r.apply(t, target) // writes the record again
			if diff := cmp.Diff(written.Object["spec"], get(t, api, kindVirtualService, "website").Object["spec"]); diff != "" {
				t.Errorf("applied again (-before +after)\n%s", diff)
			}
			again := get(t, api, kindVirtualService, "website")
			annotations = again.GetAnnotations()
			test.lose(annotations)
			again.SetAnnotations(annotations)
			if err := api.Update(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			seen := r.must(t, target)[0]
			if !seen.Changed {
				t.Errorf("%+v bears no changes to restore", seen)
			}
			if err := r.Restore(t.Context(), target, seen); err != nil {
				t.Fatal(err)
			}
			restored := get(t, api, kindVirtualService, "website")
			want := test.spec
			if _, found := annotations[traffic.AnnotationSplit]; found { // by the split, not by the record
				want = shares.Replace(want)
			}
			if diff := cmp.Diff(specOf(t, want), restored.Object["spec"]); diff != "" || len(restored.GetAnnotations()) > 0 {
				t.Errorf("restored with annotations %v (-want +got)\n%s", restored.GetAnnotations(), diff)
			}
		})
	}
}

// Otherwise each pass would have the requests copied once more.
func TestACopyOfRequestsGoesWithTheRouteThatIsPutBack(t *testing.T) {
	for name, test := range map[string]struct {
		change func(u *unstructured.Unstructured)
		want   string
	}{
		"a user edits the route": {
			func(u *unstructured.Unstructured) {
				routes, _ := u.Object["spec"].(map[string]any)["http"].([]any)
				routes[1].(map[string]any)["timeout"] = "5s"
			},
			strings.Replace(mirrored, "  - name: website\n", "  - name: website\n    timeout: 5s\n", 1),
		},
		"the record is lost": {
			func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{traffic.AnnotationSplit: "web"})
			}, mirrored,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := testRouter(t, interceptor.Funcs{}, object(t, kindVirtualService, "website", mirrored))
			target := shopTarget("VirtualService/website")
			splitv1.EditRouting(target.Split, func(r *splitv1.Routing) { r.Mirror = &splitv1.Mirror{Service: "web-next", Percent: 10} })
			target.Split.Spec = splitv1.TrafficSplitSpec{Service: "web", Backends: []splitv1.Backend{{Service: "web-stable"}, {Service: "web-canary"}}}
			target.Resolved.Mirror = &traffic.Mirror{Service: "web-next", Percent: 10}
			target.Resolved.Ports[0].Mirror = &traffic.Destination{Service: "web-next", Port: 80}
			for range 2 {
				r.apply(t, target)
				u := get(t, api, kindVirtualService, "website")
				test.change(u)
				if err := api.Update(t.Context(), u); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Restore(t.Context(), target, r.must(t, target)[0]); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(specOf(t, test.want), get(t, api, kindVirtualService, "website").Object["spec"]); diff != "" {
				t.Errorf("restored (-want +got)\n%s", diff)
			}
		})
	}
}

// mirrored has a copy that its owner asks for.
const mirrored = website + "    mirrors: [{destination: {host: audit}}]\n"
