// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/analysis/egress"
)

func TestThePolicyHoldsForTheAddressThatANameLeadsTo(t *testing.T) {
	e := listen(t, nil)
	_, port, err := net.SplitHostPort(e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f000001"} {
		got := once(t, cluster(), egress.Policy{}, Options{}, question("q", "http://"+host+":"+port))
		if got.outcome != Failed {
			t.Errorf("%s: %+v", host, got)
		}
	}
	got := once(t, cluster(), egress.Policy{}, Options{}, question("q", "http://localhost:"+port))
	if !strings.Contains(got.message, "a loopback address") {
		t.Errorf("got %q", got.message)
	}
	if heard := e.heard(); len(heard) != 0 {
		t.Errorf("reached: %+v", heard)
	}
}

func endpointSlice(name string, addresses ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: addresses}},
	}
}

func TestTheAddressesOfTheAPIServer(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1", "fd00:10:96::1"}},
	}
	other := endpointSlice("other", "10.244.0.9")
	other.Labels[discoveryv1.LabelServiceName] = "other"
	api := fake.NewClientBuilder().WithObjects(service, endpointSlice("a", "172.18.0.2"), endpointSlice("b", "172.18.0.3", "no address"), other).Build()
	got, err := APIServer(api, netip.MustParseAddr("192.0.2.1"))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range got {
		texts = append(texts, a.String())
	}
	if diff := cmp.Diff([]string{"192.0.2.1", "10.96.0.1", "fd00:10:96::1", "172.18.0.2", "172.18.0.3"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadableAddressesOfTheAPIServerAreAnError(t *testing.T) {
	if _, err := APIServer(fake.NewClientBuilder().Build())(t.Context()); err == nil {
		t.Error("no Service is no error")
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
	api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(service).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("down")
		},
	})
	if _, err := APIServer(api)(t.Context()); err == nil {
		t.Error("no list is no error")
	}
}

func TestTheAddressesOfNodes(t *testing.T) {
	node := func(name string, addresses ...corev1.NodeAddress) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
	}
	api := fake.NewClientBuilder().WithObjects(
		node("a", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "172.18.0.2"}, corev1.NodeAddress{Type: corev1.NodeHostName, Address: "a"}),
		node("b", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "fc00::3"}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "203.0.113.9"}),
	).Build()
	got, err := Nodes(api)(t.Context())
	want := []netip.Addr{netip.MustParseAddr("172.18.0.2"), netip.MustParseAddr("fc00::3"), netip.MustParseAddr("203.0.113.9")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	down := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("down")
		},
	})
	if _, err := Nodes(down)(t.Context()); err == nil {
		t.Error("no list is no error")
	}
}

// A node answers at more addresses than its status has: pods reach its kubelet at the bridge of
// their own network.
func TestTheAddressesOfNodesInTheNetworkOfPods(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"projectcalico.org/IPv4VXLANTunnelAddr": "192.168.7.0", "volumes": "true"}},
			Spec:       corev1.NodeSpec{PodCIDRs: []string{"10.244.3.0/24", "fd00:10:244:3::/64", "none"}},
		},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{"projectcalico.org/IPv4Address": "192.0.2.7/24"}}},
	).Build()
	got, err := Nodes(api)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range got {
		texts = append(texts, a.String())
	}
	if diff := cmp.Diff([]string{"10.244.3.0", "10.244.3.1", "fd00:10:244:3::", "fd00:10:244:3::1", "192.168.7.0", "192.0.2.7"}, texts); diff != "" {
		t.Error(diff)
	}
}
