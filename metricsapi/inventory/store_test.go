// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/metricsapi/inventory"
	"github.com/serin-dev/serin/metricsapi/observe"
)

func name(namespace, n string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: n}
}

// metaOf is metadata, with the controller "Kind/name" of an API version, if any.
func metaOf(namespace, n, version, kind, owner string) *metav1.ObjectMeta {
	m := &metav1.ObjectMeta{Namespace: namespace, Name: n}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner, Controller: new(true)}}
	}
	return m
}

func pod(m *metav1.ObjectMeta, node string, addresses ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *m, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, a := range addresses {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a})
	}
	return p
}

func endpointSlice(n, service string, pods ...string) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: n, Labels: map[string]string{discoveryv1.LabelServiceName: service}}}
	for _, p := range pods {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: p}})
	}
	return e
}

// shop is a Deployment with a pod behind two Services, a StatefulSet's pod, and a pod of
// a Job.
func shop() *inventory.Store {
	s := inventory.NewStore()
	for kind, list := range map[observe.Kind][]*metav1.ObjectMeta{
		observe.Namespaces:   {metaOf("", "shop", "", "", "")},
		observe.Nodes:        {metaOf("", "node-1", "", "", "")},
		observe.Deployments:  {metaOf("shop", "web", "", "", "")},
		observe.ReplicaSets:  {metaOf("shop", "web-5d", "apps/v1", "Deployment", "web"), metaOf("shop", "theirs", "example.org/v1", "Rollout", "theirs")},
		observe.StatefulSets: {metaOf("shop", "db", "", "", "")},
		observe.Jobs:         {metaOf("shop", "import", "batch/v1", "CronJob", "nightly")},
		observe.Services:     {metaOf("shop", "web", "", "", ""), metaOf("shop", "web-stable", "", "", "")},
	} {
		for _, m := range list {
			s.SetObject(kind, m)
		}
	}
	s.SetPod(pod(metaOf("shop", "web-5d-a", "apps/v1", "ReplicaSet", "web-5d"), "node-1", "10.0.0.1", "fd00::1"))
	s.SetPod(pod(metaOf("shop", "db-0", "apps/v1", "StatefulSet", "db"), "node-1", "10.0.0.2"))
	s.SetPod(pod(metaOf("shop", "import-x", "batch/v1", "Job", "import"), "node-9", "10.0.0.3"))
	s.SetPod(pod(metaOf("shop", "theirs-a", "apps/v1", "ReplicaSet", "theirs"), "", "10.0.0.4"))
	s.SetEndpoints(endpointSlice("web-1", "web", "web-5d-a"))
	s.SetEndpoints(endpointSlice("web-2", "web", "web-5d-a"))
	s.SetEndpoints(endpointSlice("web-stable-1", "web-stable", "web-5d-a"))
	s.SetEndpoints(endpointSlice("gone-1", "gone", "web-5d-a"))
	return s
}

func TestHoldersAreWhatContainsAPod(t *testing.T) {
	s := shop()
	for what, test := range map[string]struct {
		kind observe.Kind
		pod  string
		want []types.NamespacedName
	}{
		"its namespace":                          {observe.Namespaces, "web-5d-a", []types.NamespacedName{name("", "shop")}},
		"its node":                               {observe.Nodes, "web-5d-a", []types.NamespacedName{name("", "node-1")}},
		"a node that is not known":               {observe.Nodes, "import-x", nil},
		"no node":                                {observe.Nodes, "theirs-a", nil},
		"itself":                                 {observe.Pods, "web-5d-a", []types.NamespacedName{name("shop", "web-5d-a")}},
		"its ReplicaSet":                         {observe.ReplicaSets, "web-5d-a", []types.NamespacedName{name("shop", "web-5d")}},
		"its Deployment, by its ReplicaSet":      {observe.Deployments, "web-5d-a", []types.NamespacedName{name("shop", "web")}},
		"a ReplicaSet that another kind makes":   {observe.ReplicaSets, "theirs-a", []types.NamespacedName{name("shop", "theirs")}},
		"no Deployment for that":                 {observe.Deployments, "theirs-a", nil},
		"its StatefulSet":                        {observe.StatefulSets, "db-0", []types.NamespacedName{name("shop", "db")}},
		"its Job, which a CronJob made":          {observe.Jobs, "import-x", []types.NamespacedName{name("shop", "import")}},
		"its Services, each once, if they exist": {observe.Services, "web-5d-a", []types.NamespacedName{name("shop", "web"), name("shop", "web-stable")}},
		"no Service":                             {observe.Services, "db-0", nil},
		"no TrafficSplit":                        {observe.TrafficSplits, "web-5d-a", nil},
		"nothing of a pod that is not there":     {observe.Namespaces, "absent", nil},
	} {
		t.Run(what, func(t *testing.T) {
			got := s.Holders(test.kind, name("shop", test.pod))
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHoldersFollowChanges(t *testing.T) {
	s := shop()
	services := func() string { return fmt.Sprint(s.Holders(observe.Services, name("shop", "web-5d-a"))) }
	s.DeleteEndpoints(name("shop", "web-1"))
	if got := services(); got != "[shop/web shop/web-stable]" {
		t.Errorf("with the other slice of web: %s", got)
	}
	s.SetEndpoints(endpointSlice("web-2", "web", "db-0"))
	if got := services(); got != "[shop/web-stable]" {
		t.Errorf("with another pod in it: %s", got)
	}
	s.DeleteObject(observe.Services, name("shop", "web-stable"))
	if got := services(); got != "[]" {
		t.Errorf("without the Service: %s", got)
	}
	s.SetObject(observe.ReplicaSets, metaOf("shop", "web-5d", "apps/v1", "ReplicaSet", "web-5d")) // nonsense that ends
	if got := s.Holders(observe.Deployments, name("shop", "web-5d-a")); len(got) != 0 {
		t.Errorf("of a ReplicaSet that owns itself: %v", got)
	}
}

func TestAnAddressIsThatOfOnePod(t *testing.T) {
	at := netip.MustParseAddr
	s := shop()
	expect := func(why, address, want string) {
		t.Helper()
		got, found := s.Pod(at(address))
		if got.Name != want || found != (want != "") {
			t.Errorf("%s: %s is that of %v, want %q", why, address, got, want)
		}
	}
	expect("first address", "10.0.0.1", "web-5d-a")
	expect("second address", "fd00::1", "web-5d-a")
	expect("written as IPv6", "::ffff:10.0.0.1", "web-5d-a")
	expect("no pod's", "10.9.9.9", "")

	leaving := pod(metaOf("shop", "web-5d-a", "", "", ""), "node-1", "10.0.0.1")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s.SetPod(leaving)
	expect("leaving", "10.0.0.1", "web-5d-a")
	expect("given up", "fd00::1", "")
	s.SetPod(pod(metaOf("shop", "next", "", "", ""), "node-1", "10.0.0.1"))
	s.SetPod(leaving) // one more change of the old one
	expect("given to the next", "10.0.0.1", "next")
	s.DeletePod(name("shop", "web-5d-a"))
	expect("the old one is gone", "10.0.0.1", "next")

	over := pod(metaOf("shop", "next", "", "", ""), "node-1", "10.0.0.1")
	over.Status.Phase = corev1.PodSucceeded
	s.SetPod(over)
	expect("over", "10.0.0.1", "")
	host := pod(metaOf("shop", "agent", "", "", ""), "node-1", "192.168.0.1")
	host.Spec.HostNetwork = true
	s.SetPod(host)
	expect("the node's own", "192.168.0.1", "")
	s.SetPod(pod(metaOf("shop", "odd", "", "", ""), "", "not an address"))
}

func TestNamesAreInOrderAndMatch(t *testing.T) {
	s := inventory.NewStore()
	for _, n := range []types.NamespacedName{name("shop", "b"), name("bank", "z"), name("shop", "a")} {
		m := &metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name, Labels: map[string]string{"app": n.Name, "tier": "front"}}
		s.SetObject(observe.Deployments, m)
		s.SetPod(pod(m, ""))
	}
	for _, test := range []struct {
		namespace, selector string
		want                []types.NamespacedName
	}{
		{"", "", []types.NamespacedName{name("bank", "z"), name("shop", "a"), name("shop", "b")}},
		{"shop", "tier=front", []types.NamespacedName{name("shop", "a"), name("shop", "b")}},
		{"", "app in (a,z)", []types.NamespacedName{name("bank", "z"), name("shop", "a")}},
		{"", "app!=a,tier", []types.NamespacedName{name("bank", "z"), name("shop", "b")}},
		{"", "!tier", nil},
		{"none", "", nil},
	} {
		selector, err := labels.Parse(test.selector)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []observe.Kind{observe.Deployments, observe.Pods} {
			if diff := cmp.Diff(test.want, s.Names(kind, test.namespace, selector)); diff != "" {
				t.Errorf("%s, namespace %q, selector %q: -want +got:\n%s", kind.Resource, test.namespace, test.selector, diff)
			}
		}
	}
	s.DeletePod(name("shop", "a"))
	if s.Exists(observe.Pods, name("shop", "a")) || !s.Exists(observe.Deployments, name("shop", "a")) {
		t.Error("a deleted pod is there, or its Deployment is not")
	}
}

func TestASplitHasTheWeightsInEffect(t *testing.T) {
	split := &splitv1.TrafficSplit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: splitv1.TrafficSplitSpec{
			Service:  "web.shop.svc.cluster.local",
			Backends: []splitv1.Backend{{Service: "web-stable", Weight: 50}, {Service: "web-canary", Weight: 50}},
		},
		Status: splitv1.TrafficSplitStatus{Backends: []splitv1.BackendStatus{{
			Service: "web-stable", Weight: 90, // the largest of its ports
			Ports: []splitv1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP, Weight: 90}, {Port: 53, Protocol: corev1.ProtocolUDP, Weight: 10}},
		}}},
	}
	s := inventory.NewStore()
	s.SetSplit(split)
	got, found := s.Split(name("shop", "web"))
	want := observe.Split{Apex: "web", Backends: []metricsv1.Backend{
		{Apex: "web", Name: "web-stable", Weight: 90}, {Apex: "web", Name: "web-canary", Weight: 50},
	}}
	if diff := cmp.Diff(want, got); !found || diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.DeleteObject(observe.TrafficSplits, name("shop", "web"))
	if _, found := s.Split(name("shop", "web")); found {
		t.Error("a deleted split is there")
	}
}

// realPod is a pod as a cluster has them, with what is not kept of it.
func realPod(i int) *corev1.Pod {
	app := fmt.Sprintf("app-%d", i/10)
	m := metaOf("namespace-"+strconv.Itoa(i/100), fmt.Sprintf("%s-7d4b9c6f5d-%05d", app, i), "apps/v1", "ReplicaSet", app+"-7d4b9c6f5d")
	m.Labels = map[string]string{
		"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7d4b9c6f5d",
		"topology.kubernetes.io/zone": "zone-a", "version": "v1",
	}
	m.Annotations = map[string]string{"long": string(make([]byte, 1000))}
	p := pod(m, fmt.Sprintf("node-%d", i%50), fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	p.Spec.Containers = make([]corev1.Container, 2)
	return p
}

// bytesPerPod is what a Store takes for each of some pods, with their ReplicaSets and
// EndpointSlices.
func bytesPerPod(pods int) float64 {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := inventory.NewStore()
	for i := range pods {
		p := realPod(i)
		s.SetPod(p)
		if i%10 == 0 {
			owner := p.OwnerReferences[0].Name
			s.SetObject(observe.ReplicaSets, metaOf(p.Namespace, owner, "apps/v1", "Deployment", "app"))
			e := endpointSlice(owner, "app")
			e.Namespace = p.Namespace
			for j := range 10 {
				e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: realPod(i + j).Name}})
			}
			s.SetEndpoints(e)
		}
	}
	after := heap()
	runtime.KeepAlive(s)
	return (float64(after) - float64(before)) / float64(pods)
}

func TestAPodTakesLittleMemory(t *testing.T) {
	const most = 1500
	if got := bytesPerPod(10_000); got > most {
		t.Errorf("%.0f bytes per pod, want at most %d", got, most)
	}
}

func BenchmarkMemoryPerPod(b *testing.B) {
	for _, pods := range []int{1_000, 10_000} {
		b.Run(strconv.Itoa(pods), func(b *testing.B) {
			var got float64
			for b.Loop() {
				got = bytesPerPod(pods)
			}
			b.ReportMetric(got, "B/pod")
		})
	}
}

func BenchmarkHolders(b *testing.B) {
	s := shop()
	for b.Loop() {
		s.Holders(observe.Deployments, name("shop", "web-5d-a"))
	}
}
