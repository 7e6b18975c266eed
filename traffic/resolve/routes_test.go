// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

func TestRoutesThatASplitNames(t *testing.T) {
	for text, test := range map[string]struct {
		want []traffic.Route
		says string
	}{
		"[{kind: HTTPRoute, name: web}]":                               {want: []traffic.Route{{Kind: "HTTPRoute", Name: "web"}}},
		"[{kind: HTTPRoute, name: web}, {kind: GRPCRoute, name: web}]": {want: []traffic.Route{{Kind: "HTTPRoute", Name: "web"}, {Kind: "GRPCRoute", Name: "web"}}},
		"[{kind: VirtualService, name: web, section: checkout}]":       {want: []traffic.Route{{Kind: "VirtualService", Name: "web", Section: "checkout"}}},
		"[{}]":            {says: "is not a route"},
		"[{name: web}]":   {says: "is not a route"},
		"[HTTPRoute/web]": {says: "can't be read"},
		"[{kind: HTTPRoute, name: web, group: x}]":                     {says: "can't be read"},
		"[{kind: Ingress, name: web}]":                                 {says: "is not a route"},
		"[{kind: HTTPRoute, name: Web}]":                               {says: "is not a route"},
		"[{kind: HTTPRoute, name: web, section: rule}]":                {says: "only a VirtualService has sections"},
		"[{kind: HTTPRoute, name: web}, {kind: HTTPRoute, name: web}]": {says: "named twice"},
		many(17): {says: "at most 16"},
	} {
		t.Run(text, func(t *testing.T) {
			split := webSplit()
			routing, err := splitv1.RoutingOf(split)
			if err != nil || routing.DefaultBackend == "" {
				t.Fatalf("the split's own routing: %+v, %v", routing, err)
			}
			metav1.SetMetaDataAnnotation(&split.ObjectMeta, splitv1.AnnotationRouting, "{defaultBackend: "+routing.DefaultBackend+", routes: "+text+"}")
			got, problems := resolve.Split(split, resolve.Known{Services: web(), Groups: webGroups()})
			if test.says == "" {
				if diff := cmp.Diff(test.want, got.Routes); diff != "" || len(problems) > 0 {
					t.Errorf("-want +got:\n%s%v", diff, problems)
				}
				return
			}
			if len(problems) != 1 || !traffic.Refused(problems) || !strings.Contains(problems[0].Message, test.says) {
				t.Errorf("problems %+v, want %q", problems, test.says)
			}
		})
	}
}

// many are n routes.
func many(n int) string {
	b := strings.Builder{}
	b.WriteString("[")
	for i := range n {
		b.WriteString("{kind: HTTPRoute, name: web-" + strings.Repeat("x", i+2) + "},")
	}
	return strings.TrimSuffix(b.String(), ",") + "]"
}
