// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// judging is an API server that is asked whether it would make a Service, behind a client
// that remembers what it wrote. As client.New's does, that one fails on an answer without
// a resourceVersion, which those to dry runs are, unless it is told not to remember.
func judging(t *testing.T, c client.Client, asked *int, answer func(*corev1.Service) error) client.Client {
	t.Helper()
	watching, ok := c.(client.WithWatch)
	if !ok {
		t.Fatal("the client can't watch")
	}
	return interceptor.NewClient(watching, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			options := (&client.CreateOptions{}).ApplyOptions(opts)
			service, is := o.(*corev1.Service)
			if !is || len(options.DryRun) == 0 {
				return c.Create(ctx, o, opts...)
			}
			*asked++
			if err := answer(service); err != nil || options.DisableReadYourWritesConsistency {
				return err
			}
			_, err := strconv.ParseInt(service.ResourceVersion, 10, 64)
			return err
		},
	})
}

func unsupported(fields ...string) error {
	var list field.ErrorList
	for _, f := range fields {
		list = append(list, field.NotSupported(field.NewPath("spec", f), "example.com/fast", []string{"PreferClose"}))
	}
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "website-stable", list)
}

func TestATrafficDistributionThatTheClusterRefusesIsSaidBeforeAnythingIsReleased(t *testing.T) {
	takes := func(*corev1.Service) error { return nil }
	for name, c := range map[string]struct {
		rollout, root string
		answer        func(*corev1.Service) error
		// want is a part of the message; "" when the Rollout is served.
		want  string
		asked int
	}{
		"nothing is wanted":                          {answer: takes},
		"the root Service has the same value":        {rollout: "PreferSameZone", root: "PreferSameZone", answer: takes},
		"a value that is taken is asked for once":    {rollout: "PreferSameZone", answer: takes, asked: 1},
		"another value than the root Service's":      {rollout: "PreferSameNode", root: "PreferSameZone", answer: takes, asked: 1},
		"a value that is refused":                    {rollout: "example.com/fast", answer: func(*corev1.Service) error { return unsupported("trafficDistribution") }, want: `spec.trafficDistribution: this cluster refuses it: Unsupported value: "example.com/fast": supported values: "PreferClose"; write one of those`, asked: 2},
		"a cluster that does not know the field":     {rollout: "PreferSameZone", answer: func(s *corev1.Service) error { s.Spec.TrafficDistribution = nil; return nil }, want: "spec.trafficDistribution: this cluster drops", asked: 2},
		"an error that has nothing to do with it":    {rollout: "PreferSameZone", answer: func(*corev1.Service) error { return errInjected }, asked: 2},
		"something else that is wrong with Services": {rollout: "PreferSameZone", answer: func(*corev1.Service) error { return unsupported("ipFamilies") }, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, c0, _ := newReconciler(t, func(string) error { return nil })
			ro, root := &v1alpha1.Rollout{}, &corev1.Service{}
			for _, o := range []client.Object{ro, root} {
				if err := c0.Get(t.Context(), request.NamespacedName, o); err != nil {
					t.Fatal(err)
				}
			}
			if c.rollout != "" {
				ro.Spec.TrafficDistribution = new(v1alpha1.TrafficDistribution(c.rollout))
			}
			if c.root != "" {
				root.Spec.TrafficDistribution = &c.root
			}
			for _, o := range []client.Object{ro, root} {
				if err := c0.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			asked := 0
			r.client = judging(t, c0, &asked, c.answer)
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			if err := c0.Get(t.Context(), request.NamespacedName, ro); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(ro.Status.Conditions, v1alpha1.ConditionReady)
			refused := ready != nil && ready.Reason == v1alpha1.ReasonInvalidSpec
			if refused != (c.want != "") || !strings.Contains(ready.Message, c.want) || asked != c.asked {
				t.Errorf("asked %d times; Ready %+v", asked, ready)
			}
		})
	}
}
