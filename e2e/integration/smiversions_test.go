// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	splitserved "github.com/serin-dev/serin/controllers/trafficsplit/served"
	"github.com/serin-dev/serin/e2e/controlplane"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
	"github.com/serin-dev/serin/traffic"
)

const splitKind = "trafficsplits.split.smi-spec.io"

// Weights as the versions' published schemas have them.
const (
	quantities = "{x-kubernetes-int-or-string: true}"
	numbers    = "{type: number}"
)

// meshKind is TrafficSplit as a mesh brings it: without a status, in the given versions
// with their weights, the last of which is stored.
func meshKind(t *testing.T, versions ...[2]string) *unstructured.Unstructured {
	t.Helper()
	var list strings.Builder
	for i, v := range versions {
		matches := ""
		if v[0] >= "v1alpha3" {
			matches = "matches: {type: array, items: {type: object, required: [kind, name], properties: {kind: {type: string, enum: [HTTPRouteGroup]}, name: {type: string}}}}\n"
		}
		fmt.Fprintf(&list, `
  - name: %s
    served: true
    storage: %t
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [service, backends]
            properties:
              service: {type: string}
              backends: {type: array, items: {type: object, required: [service, weight], properties: {service: {type: string}, weight: %s}}}
              %s`, v[0], i == len(versions)-1, v[1], matches)
	}
	u := istioObject(t, "CustomResourceDefinition", splitKind, `
group: split.smi-spec.io
scope: Namespaced
names: {kind: TrafficSplit, listKind: TrafficSplitList, plural: trafficsplits, singular: trafficsplit}
versions:`+list.String())
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	return u
}

// otherPlane has the tests look at another control plane, without the chart. Tests that do
// so must not run in parallel.
func otherPlane(t *testing.T) {
	t.Helper()
	other, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true, FakeNode: &fakenode.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	formerPlane, formerAdmin, formerServed := plane, admin, served
	t.Cleanup(func() {
		plane, admin, served = formerPlane, formerAdmin, formerServed
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	plane = other
	connect(t)
}

// elsewhere has the tests look at another control plane, with everything of the chart
// but the kind TrafficSplit.
func elsewhere(t *testing.T) {
	t.Helper()
	otherPlane(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorSpace}}
	objects := append([]client.Object{namespace}, kinds(chart,
		"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")...)
	for _, o := range objects {
		if o.GetName() == splitKind {
			continue
		}
		fresh, _ := o.DeepCopyObject().(client.Object)
		fresh.SetResourceVersion("")
		fresh.SetUID("")
		if err := admin.Create(t.Context(), fresh); err != nil {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

func connect(t *testing.T) {
	t.Helper()
	var err error
	if admin, err = client.New(plane.Config, client.Options{Scheme: newScheme()}); err != nil {
		t.Fatal(err)
	}
}

// serve has the control plane serve TrafficSplits as a mesh brought them. The API server
// tells of the versions of a kind one after the other.
func serve(t *testing.T, kind *unstructured.Unstructured, want traffic.Served) {
	t.Helper()
	s := &scene{T: t, reader: admin}
	cluster, err := discovery.NewDiscoveryClientForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), kind); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := admin.Delete(ctx, kind); err != nil {
			t.Error(err)
		}
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, neverAfter, true, func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(kind), kind)), nil
		})
		if err != nil {
			t.Errorf("the kind is still there: %v", err)
		}
	})
	s.eventually("TrafficSplits are served", func(context.Context) bool {
		served, err = splitserved.Discover(cluster)
		if err != nil || served != want {
			return false
		}
		connect(t)
		return admin.List(t.Context(), &splitv1.TrafficSplitList{}) == nil
	})
}

// annotated is the status that is kept in the annotation.
func (s *scene) annotated(name string) (status splitv1.TrafficSplitStatus) {
	s.Helper()
	ts := &splitv1.TrafficSplit{}
	if err := admin.Get(s.Context(), s.key(name), ts); err != nil {
		return status
	}
	if text, found := ts.Annotations[splitv1.AnnotationStatus]; found {
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			s.Errorf("%s: %v", text, err)
		}
	}
	return status
}

func TestARolloutIsPromotedByTheTrafficSplitsThatAMeshBrought(t *testing.T) {
	elsewhere(t)
	for name, test := range map[string]struct {
		kind *unstructured.Unstructured
		want traffic.Served
	}{
		"v1alpha1 with quantities":           {meshKind(t, [2]string{"v1alpha1", quantities}), traffic.Served{Version: "v1alpha1", NoStatus: true, NoMatches: true}},
		"v1alpha2, while v1alpha1 is stored": {meshKind(t, [2]string{"v1alpha2", numbers}, [2]string{"v1alpha1", quantities}), traffic.Served{Version: "v1alpha2", NoStatus: true, NoMatches: true}},
		"v1alpha3":                           {meshKind(t, [2]string{"v1alpha3", numbers}), traffic.Served{Version: "v1alpha3", NoStatus: true}},
		"v1alpha4 without a status":          {meshKind(t, [2]string{"v1alpha4", numbers}), traffic.Served{Version: "v1alpha4", NoStatus: true}},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.kind, test.want)
			s := newScene(t)
			ro := newRollout(v1alpha1.Step{Weight: 20, Until: v1alpha1.UntilManual}, v1alpha1.Step{Weight: 60})
			ro.Spec.Router = v1alpha1.RouterSMI
			s.create(deployment("website", 4), service("website"), ro)
			s.startOperator(newMeasurements())
			s.waitReady()
			s.setImage(imageV2)
			s.waitReason(v1alpha1.ReasonWaitingForApproval)
			var said splitv1.TrafficSplitStatus
			s.eventually("a weight is in effect, by what the annotation says", func(context.Context) bool {
				said = s.annotated("website")
				return meta.IsStatusConditionTrue(said.Conditions, splitv1.ConditionProgrammed)
			})
			if len(said.Backends) != 2 {
				t.Errorf("the annotation says %+v", said)
			}
			s.decide(v1alpha1.ControlPromote)
			s.eventually("v2 is all there is", func(context.Context) bool { return len(s.pods()[imageV2]) == 4 && len(s.pods()) == 1 })
			s.waitReady()
			s.checkGivenBack()
		})
	}
}

func TestWhatTheTrafficSplitsOfAMeshHaveNoRoomForIsRefused(t *testing.T) {
	elsewhere(t)
	serve(t, meshKind(t, [2]string{"v1alpha2", numbers}), traffic.Served{Version: "v1alpha2", NoStatus: true, NoMatches: true})
	s := newScene(t)
	s.startOperator(newMeasurements())
	limited := newRollout(v1alpha1.Step{Weight: 20, Matches: []string{"testers"}})
	limited.Spec.Router = v1alpha1.RouterSMI
	s.create(deployment("website", 1), service("website"), limited)
	s.eventually("the Rollout with matches is refused", func(context.Context) bool {
		_, reason, message := ready(s.rollout())
		return reason == v1alpha1.ReasonRouterUnavailable && strings.Contains(message, "v1alpha2, which can't be limited")
	})
	// Nothing of what a mesh's schema takes keeps the other splits from being read.
	odd := istioObject(t, "TrafficSplit", "odd", "service: birds\nbackends: [{service: birds-blue, weight: 1.5}]")
	odd.SetAPIVersion("split.smi-spec.io/v1alpha2")
	s.create(service("birds"), odd, &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Name: "proxied", Annotations: map[string]string{splitv1.AnnotationRouting: "router: nginx"}},
		Spec:       splitv1.TrafficSplitSpec{Service: "website", Backends: []splitv1.Backend{{Service: "birds", Weight: 1}}},
	})
	for name, want := range map[string]string{
		"odd":     `the weight "1.5" of "birds-blue" is not whole`,
		"proxied": "are not those that proxies read",
	} {
		s.eventually(name+" is refused", func(context.Context) bool {
			c := meta.FindStatusCondition(s.annotated(name).Conditions, splitv1.ConditionAccepted)
			return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, want)
		})
	}
}
