// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/traffic"
)

func TestTheCacheKeepsWhatIsUsed(t *testing.T) {
	ready, zone := true, "a"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{}}, Annotations: map[string]string{"a": "b"},
		},
		Ports: []discoveryv1.EndpointPort{{}},
		Endpoints: []discoveryv1.Endpoint{
			{
				Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "p", UID: "u"}, Zone: &zone, NodeName: &zone,
				Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}},
			},
			{Addresses: []string{"10.0.0.2", "10.0.0.3"}},
		},
	}
	got, err := transformEndpointSlice(slice.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Endpoints: []discoveryv1.Endpoint{
			{
				Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"},
				Zone: &zone, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{}}},
			},
			{Addresses: []string{"10.0.0.2"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("EndpointSlice (-want +got):\n%s", diff)
	}
	status := corev1.PodStatus{PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 18000, Protocol: corev1.ProtocolTCP}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: "n", ServiceAccountName: "s", Containers: []corev1.Container{{Name: "proxy", Image: "i", Ports: ports}},
	}, Status: status}
	kept, err := transformPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Ports: ports}}}, Status: status}, kept); diff != "" {
		t.Errorf("Pod (-want +got):\n%s", diff)
	}
}

// Those that a backup brings name pods that are gone, until the controller of EndpointSlices deletes them.
func TestEndpointsOfABackupAreNone(t *testing.T) {
	owner := metav1.NewControllerRef(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}, corev1.SchemeGroupVersion.WithKind("Service"))
	for name, test := range map[string]struct {
		manager string
		owners  []metav1.OwnerReference
		want    int
	}{
		"of the Service":          {managedByKubernetes, []metav1.OwnerReference{*owner}, 1},
		"of a backup":             {managedByKubernetes, nil, 0},
		"that a user has written": {"", nil, 1},
	} {
		got, err := transformEndpointSlice(&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelManagedBy: test.manager}, OwnerReferences: test.owners},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		})
		if slice, ok := got.(*discoveryv1.EndpointSlice); err != nil || !ok || len(slice.Endpoints) != test.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTheCacheKeepsWhatIsWrittenOfTheEndpointsOfProxies(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-proxies-ipv4", Labels: map[string]string{discoveryv1.LabelManagedBy: endpoints.ManagedBy}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(18000))}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, NodeName: new("n"), Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "p", UID: "u"}, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}},
		}},
	}
	live := slice.DeepCopy()
	live.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	got, err := transformEndpointSlice(live)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slice, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOfANodeTheCacheKeepsTheLabels(t *testing.T) {
	node, want := endpoints.Node(), endpoints.Node()
	node.Name, node.Labels, node.Annotations = "n", map[string]string{corev1.LabelTopologyZone: "a", "pool": "edge"}, map[string]string{"a": "b"}
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	want.Name, want.Labels = "n", node.Labels
	got, err := transformNode(node)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOfAWholeNodeTheCacheKeepsTheAddresses(t *testing.T) {
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.3"}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b", "tunnel": "192.168.7.0"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.244.0.0/24", PodCIDRs: []string{"10.244.0.0/24"}, ProviderID: "p"},
		Status:     corev1.NodeStatus{Addresses: addresses, Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	}
	got, err := transformNode(node)
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"tunnel": "192.168.7.0"}},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{"10.244.0.0/24"}}, Status: corev1.NodeStatus{Addresses: addresses},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestACopyOfKubectlIsDroppedWhereNoWholeServiceIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		kept   bool
	}{
		"a Service of a team":              {labels: map[string]string{"app": "website"}},
		"a Service of one of its versions": {labels: map[string]string{v1alpha1.LabelRollout: "website"}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := transformService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{
				Labels: test.labels, ManagedFields: []metav1.ManagedFieldsEntry{{}},
				Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "web"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			service := got.(*corev1.Service)
			_, kept := service.Annotations[corev1.LastAppliedConfigAnnotation]
			if kept != test.kept || service.Annotations["team"] != "web" || service.ManagedFields != nil {
				t.Errorf("kept %+v", service.ObjectMeta)
			}
		})
	}
}

func TestATombstonePassesTheTransforms(t *testing.T) {
	for object, options := range CacheOptions() {
		if options.Transform == nil {
			t.Errorf("%T has no transform, so a default may take what is used", object)
			continue
		}
		tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/web"}
		if got, err := options.Transform(tombstone); err != nil || got != tombstone {
			t.Errorf("%T: %v, error %v", object, got, err)
		}
	}
}

func TestOnlyProxiesAreCachedOfKindsThatEverybodyHas(t *testing.T) {
	limited := map[string]bool{}
	for object, options := range CacheOptions() {
		if options.Label == nil {
			continue
		}
		if !options.Label.Matches(labelSet(traffic.LabelProxy)) || options.Label.Matches(labelSet("app")) {
			t.Errorf("%T is limited to %s", object, options.Label)
		}
		switch object.(type) {
		case *corev1.Pod:
			limited["Pod"] = true
		case *corev1.ServiceAccount, *rbacv1.RoleBinding, *policyv1.PodDisruptionBudget:
			limited["rest"] = true
		}
	}
	if !limited["Pod"] || !limited["rest"] {
		t.Errorf("limited: %v", limited)
	}
}

type labelSet string

func (l labelSet) Has(key string) bool              { return string(l) == key }
func (l labelSet) Get(string) string                { return "x" }
func (l labelSet) Lookup(key string) (string, bool) { return "x", string(l) == key }
