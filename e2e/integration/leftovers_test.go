// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx"
)

// TestEveryLeftoverOfAReleaseIsFound: of the router's own kinds too, so that a kind that
// it makes one day is not forgotten.
func TestEveryLeftoverOfAReleaseIsFound(t *testing.T) {
	type object struct {
		kind schema.GroupVersionKind
		name string
	}
	service := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	objects := []object{{splitv1.GroupVersion.WithKind("TrafficSplit"), "website"}, {service, "website-stable"}, {service, "website-canary"}}
	for _, kind := range (&nginx.Router{}).Kinds() {
		switch kind.Kind {
		case "Pod": // they go with their Deployment
		case "Service":
			objects = append(objects, object{kind, traffic.UnmatchedName("website")})
		case "ServiceAccount", "RoleBinding":
			objects = append(objects, object{kind, traffic.SharedProxyName})
		default:
			objects = append(objects, object{kind, traffic.ProxyName("website")})
		}
	}
	objects = append(objects, object{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), "serin-proxy-website"})
	scheme := newScheme()
	for _, o := range objects {
		made, err := scheme.New(o.kind)
		if err != nil {
			t.Fatal(err)
		}
		there := made.(client.Object)
		there.SetNamespace("shop")
		there.SetName(o.name)
		there.SetLabels(map[string]string{traffic.LabelProxy: "website"})
		left := leftovers(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build(), "shop")
		if len(left) != 1 || !strings.Contains(left[0], "."+o.kind.Kind+" "+o.name) {
			t.Errorf("%s %s is left, and found is %q", o.kind.Kind, o.name, left)
		}
	}
	if left := leftovers(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), "shop"); len(left) > 0 {
		t.Errorf("nothing is left, and found is %q", left)
	}
}
