// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/traffic"
)

// stored is the metadata of an object website in the namespace shop.
func stored(apiVersion, kind string, finalizers ...string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website", Finalizers: finalizers},
	}
}

func deleting(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	now := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	o.DeletionTimestamp = &now
	return o
}

// pausedBy is a Deployment whose spec.paused is a field manager's.
func pausedBy(manager string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)},
	}}, Spec: appsv1.DeploymentSpec{Paused: true}}
}

// cluster has objects that may have to be restored.
func cluster(splits string, deployment *appsv1.Deployment, objects ...*metav1.PartialObjectMetadata) restorables {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	core := fake.NewClientset()
	if deployment != nil {
		core = fake.NewClientset(deployment)
	}
	core.Resources = []*metav1.APIResourceList{{GroupVersion: "split.smi-spec.io/" + splits, APIResources: []metav1.APIResource{{Name: "trafficsplits", Kind: "TrafficSplit"}}}}
	all := make([]runtime.Object, 0, len(objects))
	for _, o := range objects {
		all = append(all, o)
	}
	return restorables{metadatafake.NewSimpleMetadataClient(scheme, all...), core}
}

func TestUninstallingIsRefusedWhileOnlyTheOperatorCanRestore(t *testing.T) {
	const serin, smi = "serin.dev/v1alpha1", "split.smi-spec.io/v1alpha4"
	for name, test := range map[string]struct {
		objects    restorables
		namespaces []string
		want       []string
	}{
		"nothing is left":                       {objects: cluster("v1alpha4", nil)},
		"a Rollout that nothing was done for":   {objects: cluster("v1alpha4", nil, stored(serin, "Rollout"))},
		"a TrafficSplit of another tool":        {objects: cluster("v1alpha4", nil, stored(smi, "TrafficSplit", "mesh.example/split"))},
		"a Deployment that a user paused":       {objects: cluster("v1alpha4", pausedBy("kubectl"))},
		"a Rollout of a namespace not served":   {objects: cluster("v1alpha4", nil, stored(serin, "Rollout", v1alpha1.Finalizer)), namespaces: []string{"bank"}},
		"a Rollout":                             {objects: cluster("v1alpha4", nil, stored(serin, "Rollout", v1alpha1.Finalizer)), want: []string{"rollouts.serin.dev shop/website\n", "kubectl delete rollouts.serin.dev,canaryreleases.serin.dev,trafficsplits.split.smi-spec.io --all --all-namespaces", "helm rollback mine 7 --namespace ours"}},
		"a Rollout of a namespace that is":      {objects: cluster("v1alpha4", nil, stored(serin, "Rollout", v1alpha1.Finalizer)), namespaces: []string{"bank", "shop"}, want: []string{"rollouts.serin.dev shop/website\n", "kubectl --namespace bank delete rollouts.serin.dev", "kubectl --namespace shop delete rollouts.serin.dev"}},
		"a CanaryRelease":                       {objects: cluster("v1alpha4", nil, stored(serin, "CanaryRelease", v1alpha1.FinalizerCanaryRelease)), want: []string{"canaryreleases.serin.dev shop/website\n"}},
		"a TrafficSplit":                        {objects: cluster("v1alpha4", nil, stored(smi, "TrafficSplit", traffic.Finalizer)), want: []string{"trafficsplits.split.smi-spec.io shop/website\n"}},
		"a TrafficSplit of an older definition": {objects: cluster("v1alpha2", nil, stored("split.smi-spec.io/v1alpha2", "TrafficSplit", traffic.Finalizer)), want: []string{"trafficsplits.split.smi-spec.io shop/website\n"}},
		"a Deployment that stays paused":        {objects: cluster("v1alpha4", pausedBy(v1alpha1.FieldManager)), want: []string{"deployment shop/website\n", "rollout resume deployment/NAME"}},
		"one that is not deleted in time":       {objects: cluster("v1alpha4", nil, deleting(stored(serin, "Rollout", v1alpha1.Finalizer))), want: []string{"is being deleted; if it stays"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			o := uninstallOptions{namespaces: test.namespaces, release: "mine", namespace: "ours", revision: 7, timeout: time.Millisecond}
			err := o.run(t.Context(), test.objects, &out)
			if len(test.want) == 0 && (err != nil || !strings.Contains(out.String(), "Nothing is left")) {
				t.Errorf("error %v, output %q", err, out.String())
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
}

// What is not known is not taken for nothing.
func TestUninstallingIsRefusedWhenTheObjectsAreNotKnown(t *testing.T) {
	for _, resource := range []string{"rollouts", "canaryreleases", "trafficsplits"} {
		c := cluster("v1alpha4", nil)
		c.meta.(*metadatafake.FakeMetadataClient).PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("not now")
		})
		o := uninstallOptions{timeout: time.Millisecond}
		if err := o.run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "list "+resource) {
			t.Errorf("%s: %v", resource, err)
		}
	}
}

// Where it is not known in which version splits are served, a list of the wrong one finds none.
func TestUninstallingIsRefusedWhenTheServedVersionIsNotKnown(t *testing.T) {
	c := cluster("v1alpha2", nil, stored("split.smi-spec.io/v1alpha2", "TrafficSplit", traffic.Finalizer))
	c.cluster.(*fake.Clientset).PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not now")
	})
	var out strings.Builder
	o := uninstallOptions{timeout: time.Millisecond}
	if err := o.run(t.Context(), c, &out); err == nil || !strings.Contains(err.Error(), "ask whether the cluster serves split.smi-spec.io") {
		t.Errorf("error %v, output %q", err, out.String())
	}
}

func TestUninstallingWaitsForObjectsThatAreBeingDeleted(t *testing.T) {
	synctest.Test(t, testWaitForDeletion)
}

func testWaitForDeletion(t *testing.T) {
	split := deleting(stored("split.smi-spec.io/v1alpha4", "TrafficSplit", traffic.Finalizer))
	c := cluster("v1alpha4", nil, split)
	lists := 0
	c.meta.(*metadatafake.FakeMetadataClient).PrependReactor("list", "trafficsplits", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lists++; lists == 1 {
			return false, nil, nil
		}
		return true, &metav1.List{}, nil
	})
	var out strings.Builder
	o := uninstallOptions{timeout: time.Hour}
	if err := o.run(t.Context(), c, &out); err != nil || lists != 2 {
		t.Errorf("after %d lists: %v", lists, err)
	}
}

func TestARefusalNamesSomeAndCountsTheRest(t *testing.T) {
	text := list(slices.Repeat([]leftover{{"rollouts.serin.dev", "shop", "website", false}}, 25), leftover.String)
	if strings.Count(text, "shop/website") != 20 || !strings.HasSuffix(text, "and 5 more\n") {
		t.Error(text)
	}
}
