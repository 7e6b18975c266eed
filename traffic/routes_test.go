// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

func TestRoutesThatASplitNames(t *testing.T) {
	for text, test := range map[string]struct {
		want []traffic.Route
		says string
	}{
		"HTTPRoute/web":                {want: []traffic.Route{{Kind: "HTTPRoute", Name: "web"}}},
		"HTTPRoute/web, GRPCRoute/web": {want: []traffic.Route{{Kind: "HTTPRoute", Name: "web"}, {Kind: "GRPCRoute", Name: "web"}}},
		"VirtualService/web:checkout":  {want: []traffic.Route{{Kind: "VirtualService", Name: "web", Section: "checkout"}}},
		"":                             {says: "is not a route"},
		"web":                          {says: "is not a route"},
		"Ingress/web":                  {says: "is not a route"},
		"HTTPRoute/Web":                {says: "is not a route"},
		"HTTPRoute/web:rule":           {says: "only of a VirtualService"},
		"VirtualService/web:":          {says: "only of a VirtualService"},
		"HTTPRoute/web,HTTPRoute/web":  {says: "named twice"},
		strings.Repeat("HTTPRoute/web-x,", 1) + strings.TrimSuffix(many(17), ","): {says: "at most 16"},
	} {
		t.Run(text, func(t *testing.T) {
			split := webSplit()
			metav1.SetMetaDataAnnotation(&split.ObjectMeta, splitv1.AnnotationRoutes, text)
			got, problems := traffic.Resolve(split, traffic.Known{Services: web(), Groups: webGroups()})
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
	var b strings.Builder
	for i := range n {
		b.WriteString("HTTPRoute/web-" + strings.Repeat("x", i+2) + ",")
	}
	return b.String()
}
