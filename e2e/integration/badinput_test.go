// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

const smallest = `
apiVersion: serin.dev/v1alpha1
kind: Rollout
metadata: {name: website}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: website}
  service: website
  strategy: {steps: [{weight: 10, hold: 2m}, {weight: 50, hold: 5m}]}
`

const smallestSplit = `
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata: {name: website}
spec:
  service: website
  backends: [{service: website-v1, weight: 90}, {service: website-v2, weight: 10}]
`

// dryRun sends a manifest as kubectl apply does, without keeping it.
func dryRun(ctx context.Context, manifest string) error {
	return dryRunIn(ctx, metav1.NamespaceDefault, manifest)
}

func dryRunIn(ctx context.Context, namespace, manifest string) error {
	objects, err := decode([]byte(manifest))
	if err != nil {
		return err
	}
	objects[0].SetNamespace(namespace)
	return admin.Create(ctx, objects[0], client.DryRunAll, client.FieldValidation("Strict"))
}

func TestTheSmallestObjectsAreValid(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{"Rollout": smallest, "TrafficSplit": smallestSplit} {
		if err := dryRun(t.Context(), manifest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSchemaRefusesBadInputAndNamesTheField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ manifest, old, new, want string }{
		"an unknown field":                 {smallest, "service:", "serviceName:", `unknown field "spec.serviceName"`},
		"no service":                       {smallest, "service: website", "paused: false", "spec.service"},
		"a weight above 100":               {smallest, "weight: 10,", "weight: 101,", "spec.strategy.steps[0].weight"},
		"a negative weight":                {smallest, "weight: 10,", "weight: -1,", "spec.strategy.steps[0].weight"},
		"a weight that is not whole":       {smallest, "weight: 10,", "weight: 1.5,", "spec.strategy.steps[0].weight"},
		"weights that go down":             {smallest, "weight: 50,", "weight: 5,", "weights must not go down from one step to the next; sort the steps by weight"},
		"no steps":                         {smallest, "[{weight: 10, hold: 2m}, {weight: 50, hold: 5m}]", "[]", "spec.strategy.steps"},
		"a duration that is none":          {smallest, "hold: 2m", "hold: soon", "spec.strategy.steps[0].hold"},
		"another kind of workload":         {smallest, "kind: Deployment", "kind: StatefulSet", "spec.workloadRef.kind"},
		"an unknown router":                {smallest, "service: website", "service: website\n  router: nginx2", "spec.router"},
		"a probability above 100 %":        {smallest, "service: website", "service: website\n  analysis: {maxFalseRollback: 101%}", "spec.analysis.maxFalseRollback"},
		"a Service name that is too long":  {smallest, "service: website", "service: " + strings.Repeat("w", 57), "spec.service"},
		"a Rollout name that is too long":  {smallest, "metadata: {name: website}", "metadata: {name: " + strings.Repeat("w", 53) + "}", "choose a shorter name"},
		"a split to itself":                {smallestSplit, "website-v2", "website", "can't send traffic to its own root Service; name the Services of the individual versions"},
		"a split with no weight at all":    {strings.ReplaceAll(smallestSplit, "weight: 90", "weight: 0"), "weight: 10", "weight: 0", "at least one weight must be above 0"},
		"a backend twice":                  {smallestSplit, "website-v2", "website-v1", "spec.backends[1]"},
		"a split with a fractional weight": {smallestSplit, "weight: 90", "weight: 1.5", "spec.backends[0].weight"},
		"a split with a negative weight":   {smallestSplit, "weight: 90", "weight: -1", "spec.backends[0].weight"},
		"a split without backends":         {smallestSplit, "[{service: website-v1, weight: 90}, {service: website-v2, weight: 10}]", "[]", "spec.backends"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(c.manifest, c.old, c.new, 1)
			if bad == c.manifest {
				t.Fatal("the manifest was not changed")
			}
			err := dryRun(t.Context(), bad)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestWhatTheSchemaCannotSeeIsSaidInAConditionAndTrafficIsNotTouched(t *testing.T) {
	t.Parallel()
	bare := func() *corev1.Service { s := service("website"); s.Spec.Selector = nil; return s }
	other := func() *corev1.Service { s := service("website"); s.Spec.Selector["app"] = "shop"; return s }
	foreign := func() *corev1.Service { s := service("website"); s.Name = "website-canary"; return s }
	istio := func() *v1alpha1.Rollout { r := newRollout(); r.Spec.Router = v1alpha1.RouterIstio; return r }
	for name, c := range map[string]struct {
		objects      []client.Object
		reason, says string
	}{
		"a Deployment that does not exist": {[]client.Object{service("website"), newRollout()}, v1alpha1.ReasonWorkloadNotFound, "spec.workloadRef"},
		"a Service that does not exist":    {[]client.Object{deployment("website", 1), newRollout()}, v1alpha1.ReasonServiceNotFound, "spec.service"},
		"a Service without a selector":     {[]client.Object{deployment("website", 1), bare(), newRollout()}, v1alpha1.ReasonInvalidService, "has no selector"},
		"a Service of other pods":          {[]client.Object{deployment("website", 1), other(), newRollout()}, v1alpha1.ReasonInvalidService, "does not select the pods"},
		"a name that is taken":             {[]client.Object{deployment("website", 1), service("website"), foreign(), newRollout()}, v1alpha1.ReasonConflict, "website-canary"},
		"a router that is not offered":     {[]client.Object{deployment("website", 1), service("website"), istio()}, v1alpha1.ReasonRouterUnavailable, "spec.router"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.startOperator(newMeasurements())
			s.create(c.objects...)
			s.waitReason(c.reason)
			ro := s.rollout()
			if _, _, message := ready(ro); !strings.Contains(message, c.says) {
				t.Errorf("message %q, want one with %q", message, c.says)
			}
			if !meta.IsStatusConditionTrue(ro.Status.Conditions, v1alpha1.ConditionStalled) {
				t.Error("not Stalled")
			}
			s.checkUntouched()
		})
	}
}

// What a user deletes as the Rollout says is not waited for any longer. A Rollout that is refused is not looked
// at again by itself.
func TestAReleaseGoesOnWhenTheUserDeletesWhatHasItsNames(t *testing.T) {
	t.Parallel()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	theirs := service("website")
	for name, c := range map[string]struct {
		foreign client.Object
		says    string
	}{
		"the Service of the canary": {&corev1.Service{ObjectMeta: named("website-canary"), Spec: theirs.Spec}, `The Service "website-canary"`},
		"the TrafficSplit":          {split("website", "cart", splitv1.Backend{Service: "cart-v1", Weight: 1}), `The TrafficSplit "website"`},
		"the Deployment of proxies": {deployment(traffic.ProxyName("website"), 0), `Deployment "serin-proxy-website"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := website(t, newMeasurements())
			s.create(c.foreign)
			s.setImage(imageV2)
			s.eventually("it says what is in the way", func(context.Context) bool {
				_, _, message := ready(s.rollout())
				return strings.Contains(message, c.says)
			})
			if err := admin.Delete(t.Context(), c.foreign); err != nil {
				t.Fatal(err)
			}
			s.waitReady()
		})
	}
}

// checkUntouched: neither the Service nor the Deployment was written by Serin.
func (s *scene) checkUntouched() {
	s.Helper()
	for _, o := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}} {
		if err := admin.Get(s.Context(), s.key("website"), o); err != nil {
			continue // the case is about its absence
		}
		for _, m := range o.GetManagedFields() {
			if strings.HasPrefix(m.Manager, "serin-") {
				s.Errorf("%T was written by %s", o, m.Manager)
			}
		}
	}
}

func TestTheYoungerOfTwoRolloutsOfOneDeploymentIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serveProxies()
	s.startOperator(newMeasurements())
	younger := newRollout()
	younger.Name = "zz-website"
	s.create(deployment("website", 1), service("website"), newRollout(), younger)
	s.waitReady()
	s.eventually("the younger is refused", func(ctx context.Context) bool {
		ro := &v1alpha1.Rollout{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: younger.Name}, ro); err != nil {
			return false
		}
		_, reason, message := ready(ro)
		return reason == v1alpha1.ReasonConflict && strings.Contains(message, `"website"`)
	})
	// When the older one goes, the younger takes over.
	if err := admin.Delete(t.Context(), s.rollout()); err != nil {
		t.Fatal(err)
	}
	ro := &v1alpha1.Rollout{}
	t.Cleanup(func() { t.Logf("the younger: %s", dump(ro.Status)) })
	s.eventually("the younger takes over", func(ctx context.Context) bool {
		err := admin.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: younger.Name}, ro)
		is, _, _ := ready(ro)
		return err == nil && is
	})
}
