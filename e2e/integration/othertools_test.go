// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// What Flagger and Argo Rollouts write when they release by TrafficSplits, written anew from
// their documentation: Services, splits of older versions, and their changes over a release.
// A ConfigMap stands for the Canary or the Rollout that owns the split.

// otherTool is one of them, in a namespace with an operator.
type otherTool struct {
	*scene
	// version of TrafficSplits that it writes, root Service and split.
	version, root string
	owner         metav1.OwnerReference
}

func newOtherTool(t *testing.T, version, root string) *otherTool {
	t.Helper()
	s := newScene(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: root}}
	s.create(owner)
	s.serveProxies()
	s.startOperator(newMeasurements())
	return &otherTool{s, version, root, metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

// backends are those of a canary and a stable version, as JSON.
func backends(canary string, weight int, stable string) string {
	return fmt.Sprintf(`[{"service": %q, "weight": %d}, {"service": %q, "weight": %d}]`, canary, weight, stable, 100-weight)
}

// list is what backends as JSON are in an object.
func (o *otherTool) list(backends string) (list []any) {
	o.Helper()
	if err := json.Unmarshal([]byte(backends), &list); err != nil {
		o.Fatal(err)
	}
	return list
}

// split is an empty split of the tool's version.
func (o *otherTool) split() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("split.smi-spec.io/" + o.version)
	u.SetKind("TrafficSplit")
	u.SetNamespace(o.namespace)
	u.SetName(o.root)
	return u
}

func (o *otherTool) createSplit(backends string) {
	o.Helper()
	u := o.split()
	u.SetOwnerReferences([]metav1.OwnerReference{o.owner})
	u.Object["spec"] = map[string]any{"service": o.root, "backends": o.list(backends)}
	if err := admin.Create(o.Context(), u); err != nil {
		o.Fatal(err)
	}
}

// versionOf are two pods and their Service.
func (o *otherTool) versionOf(name string, selector map[string]string) {
	o.Helper()
	d, s := deployment(name, 2), service(name)
	d.Spec.Selector.MatchLabels, d.Spec.Template.Labels, s.Spec.Selector = selector, selector, selector
	o.create(d, s)
	o.eventually(name+" is ready", func(ctx context.Context) bool {
		return o.get(ctx, name, &appsv1.Deployment{}).(*appsv1.Deployment).Status.ReadyReplicas == 2
	})
}

// stored checks that the split is what the tool made, with the status that Serin gave it.
func (o *otherTool) stored() {
	o.Helper()
	ts := o.get(o.Context(), o.root, &splitv1.TrafficSplit{}).(*splitv1.TrafficSplit)
	if !metav1.IsControlledBy(ts, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: o.owner.UID}}) {
		o.Errorf("the split is owned by %+v", ts.OwnerReferences)
	}
	if !meta.IsStatusConditionTrue(ts.Status.Conditions, splitv1.ConditionProgrammed) || ts.Status.Proxies == nil {
		o.Errorf("the status lost something: %+v", ts.Status)
	}
}

func (o *otherTool) proxied() { o.hasEndpoints(o.root, map[string]int{"serin-proxy-" + o.root: 2}) }

func TestFlaggerReleasesByTrafficSplitsOfOlderVersions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1alpha2", "v1alpha3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			o := newOtherTool(t, version, "podinfo")
			// Flagger's root Service selects the primary alone, as the Service of the primary does.
			primary := map[string]string{"app": "podinfo-primary"}
			o.versionOf("podinfo-primary", primary)
			o.versionOf("podinfo-canary", map[string]string{"app": "podinfo"})
			root := service("podinfo")
			root.Spec.Selector = primary
			o.create(root)
			o.createSplit(backends("podinfo-canary", 0, "podinfo-primary"))
			o.effective("podinfo", map[string]int32{"podinfo-canary": 0, "podinfo-primary": 100})
			o.proxied()
			for _, weight := range []int{10, 50, 100, 0} {
				o.update(backends("podinfo-canary", weight, "podinfo-primary"))
				o.effective("podinfo", map[string]int32{"podinfo-canary": int32(weight), "podinfo-primary": int32(100 - weight)})
				o.stored()
			}
			// Flagger writes the selector of its Service whenever it differs, without Serin's key.
			change(o.scene, "podinfo", &corev1.Service{}, func(s *corev1.Service) { s.Spec.Selector = primary })
			o.eventually("the root Service has the key of the proxies again", func(ctx context.Context) bool {
				return o.get(ctx, "podinfo", &corev1.Service{}).(*corev1.Service).Spec.Selector[traffic.LabelProxy] == "podinfo"
			})
			o.proxied()
			o.gone(split("podinfo", "podinfo"))
			o.hasEndpoints("podinfo", map[string]int{"podinfo-primary": 2})
			if s := o.get(t.Context(), "podinfo", &corev1.Service{}).(*corev1.Service); !maps.Equal(s.Spec.Selector, primary) {
				t.Errorf("restored with the selector %v", s.Spec.Selector)
			}
		})
	}
}

// update writes the whole split as Flagger does: read, without what its types do not know.
func (o *otherTool) update(backends string) {
	o.Helper()
	o.eventually("the split is written", func(ctx context.Context) bool {
		u := o.split()
		if err := admin.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			o.Fatal(err)
		}
		delete(u.Object, "status")
		u.Object["spec"].(map[string]any)["backends"] = o.list(backends)
		return admin.Update(ctx, u) == nil // else another writer was first
	})
}

func TestArgoRolloutsReleasesByTrafficSplitsOfOlderVersions(t *testing.T) {
	t.Parallel()
	o := newOtherTool(t, "v1alpha3", "shop")
	label := func(hash string) map[string]string {
		return map[string]string{"app": "shop", "rollouts-pod-template-hash": hash}
	}
	o.versionOf("shop-stable", label("6f9"))
	o.versionOf("shop-canary", label("7c4"))
	o.create(service("shop"))
	// Clients of the older versions leave a weight of 0 out.
	o.createSplit(`[{"service": "shop-canary"}, {"service": "shop-stable", "weight": 100}]`)
	o.effective("shop", map[string]int32{"shop-canary": 0, "shop-stable": 100})
	for _, weight := range []int{20, 60} {
		o.patch(backends("shop-canary", weight, "shop-stable"))
		o.effective("shop", map[string]int32{"shop-canary": int32(weight), "shop-stable": int32(100 - weight)})
		o.stored()
	}
	o.patch(`[{"service": "shop-canary"}, {"service": "shop-stable", "weight": 100}]`)
	o.effective("shop", map[string]int32{"shop-canary": 0, "shop-stable": 100})
	o.proxied()
}

// patch writes what differs as Argo Rollouts does, by a merge patch.
func (o *otherTool) patch(backends string) {
	o.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"backends": `+backends+`}}`))
	if err := admin.Patch(o.Context(), o.split(), patch); err != nil {
		o.Fatal(err)
	}
}

func TestWhatOtherToolsWriteAndSerinCantServeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, test := range map[string]struct{ version, service, backends, want string }{
		"the version with quantities":               {"v1alpha1", "shop", `[{"service": "shop-stable", "weight": "1"}]`, `no matches for kind "TrafficSplit" in version "split.smi-spec.io/v1alpha1"`},
		"Argo Rollouts without a root Service":      {"v1alpha3", "shop-stable", backends("shop-canary", 20, "shop-stable"), "can't send traffic to its own root Service"},
		"a weight that is no whole number":          {"v1alpha2", "shop", `[{"service": "shop-stable", "weight": 1.5}]`, "weight"},
		"a split that no request could be sent for": {"v1alpha2", "shop", `[{"service": "shop-stable"}]`, "at least one weight must be above 0"},
	} {
		o := &otherTool{scene: s, version: test.version, root: "shop"}
		u := o.split()
		u.Object["spec"] = map[string]any{"service": test.service, "backends": o.list(test.backends)}
		if err := admin.Create(t.Context(), u); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}
