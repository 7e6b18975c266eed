// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// A user may delete what has a name that a release needs, and the Rollout that said so waits for that alone.
func TestAnObjectWithANameThatAReleaseNeedsMeansItsRollout(t *testing.T) {
	rollout := func(name string, change func(*v1alpha1.RolloutSpec)) *v1alpha1.Rollout {
		ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
		ro.Spec.WorkloadRef.Kind, ro.Spec.Service = v1alpha1.KindDeployment, name+"-root"
		change(&ro.Spec)
		return ro
	}
	r, _, _ := newReconcilerOf(t, func(string) error { return nil },
		rollout("website", func(*v1alpha1.RolloutSpec) {}),
		rollout("pair", func(s *v1alpha1.RolloutSpec) { s.Services = &v1alpha1.ServicePair{Stable: "blue", Canary: "green"} }),
		rollout("delegated", func(s *v1alpha1.RolloutSpec) { s.WorkloadRef.Kind = v1alpha1.KindCanaryRelease }),
	)
	service := func(name string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	}
	split := func(name string) client.Object {
		return &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	}
	elsewhere := func(o client.Object) client.Object { o.SetNamespace("other"); return o }
	for name, test := range map[string]struct {
		object client.Object
		want   []string
	}{
		"the Service of the stable version":     {service("website-root-stable"), []string{"website"}},
		"the Service of the canary":             {service("website-root-canary"), []string{"website"}},
		"the root Service":                      {service("website-root"), []string{"website"}},
		"the first of two Services":             {service("blue"), []string{"pair"}},
		"the second of two Services":            {service("green"), []string{"pair"}},
		"no Service that two Services need":     {service("pair-root-stable"), nil},
		"no Service that a CanaryRelease needs": {service("delegated-root-canary"), nil},
		"the name of a Rollout":                 {service("website"), nil},
		"a Service of another namespace":        {elsewhere(service("website-root-canary")), nil},
		"a Service of no Rollout":               {service("cart-canary"), nil},
		"the split":                             {split("website"), []string{"website"}},
		"the split of two Services":             {split("pair"), []string{"pair"}},
		"no split that a CanaryRelease needs":   {split("delegated"), nil},
		"a split of another namespace":          {elsewhere(split("website")), nil},
		"a split of no Rollout":                 {split("cart"), nil},
	} {
		find := map[bool][]handler.MapFunc{true: r.rolloutsOfSplit(), false: r.rolloutsOfService()}
		_, isSplit := test.object.(*splitv1.TrafficSplit)
		var got []string
		for _, f := range find[isSplit] {
			for _, request := range f(t.Context(), test.object) {
				got = append(got, request.Name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
