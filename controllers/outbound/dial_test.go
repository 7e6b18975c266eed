// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestWhereRequestsMayGo(t *testing.T) {
	policy := DialPolicy{
		Allowed: []netip.Prefix{netip.MustParsePrefix("169.254.7.0/24"), netip.MustParsePrefix("10.0.0.0/24")},
		Refused: []netip.Prefix{netip.MustParsePrefix("192.168.7.7/32"), netip.MustParsePrefix("10.0.0.7/32")},
		APIServer: func(context.Context) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:10:96::1"), netip.MustParseAddr("172.18.0.2")}, nil
		},
	}
	for address, want := range map[string]string{
		"93.184.216.34":        "",
		"10.244.1.7":           "",
		"10.96.0.10":           "",
		"2606:2800:220:1::1":   "",
		"fd00:10:244::7":       "",
		"0.0.0.0":              "an unspecified address",
		"0.1.2.3":              "an unspecified address",
		"127.0.0.1":            "a loopback address",
		"127.255.255.254":      "a loopback address",
		"::1":                  "a loopback address",
		"::":                   "an unspecified address",
		"::ffff:127.0.0.1":     "a loopback address",
		"::127.0.0.1":          "a loopback address",
		"64:ff9b::7f00:1":      "a loopback address",
		"64:ff9b::a9fe:a9fe":   "a link-local or metadata address",
		"64:ff9b:1::a9fe:a9fe": "a link-local or metadata address",
		"64:ff9b::5db8:d822":   "",
		"2002:a9fe:a9fe::1":    "a link-local or metadata address",
		"169.254.169.254":      "a link-local or metadata address",
		"169.254.170.2":        "a link-local or metadata address",
		"fe80::1%eth0":         "a link-local address",
		"fd00:ec2::254":        "a metadata address",
		"fd20:ce::254":         "a metadata address",
		"100.100.100.200":      "a metadata address",
		"168.63.129.16":        "a metadata address",
		"224.0.0.1":            "a multicast address",
		"ff02::1":              "a multicast address",
		"255.255.255.255":      "a broadcast address",
		"10.96.0.1":            "an address of the API server",
		"::ffff:10.96.0.1":     "an address of the API server",
		"fd00:10:96::1":        "an address of the API server",
		"172.18.0.2":           "an address of the API server",
		"192.168.7.7":          "an address that the operator's configuration refuses",
		"169.254.7.9":          "",
		"::ffff:169.254.7.9":   "",
		"10.0.0.7":             "",
	} {
		t.Run(address, func(t *testing.T) {
			err := policy.Check(t.Context(), netip.MustParseAddr(address))
			var refused *RefusedAddressError
			if want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &refused) || refused.Kind != want {
				t.Fatalf("got %v, want %s", err, want)
			}
			if !strings.Contains(err.Error(), "outbound.allowedCIDRs") || len(err.Error()) > MaxMessage {
				t.Errorf("the message does not say what to do in %d bytes: %v", MaxMessage, err)
			}
		})
	}
}

func TestWithoutKnowingTheAPIServerNothingIsConnected(t *testing.T) {
	policy := DialPolicy{
		Allowed:   loopback.Allowed,
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, errors.New("no cache") },
	}
	if err := policy.Check(t.Context(), netip.MustParseAddr("93.184.216.34")); err == nil || strings.Contains(err.Error(), "no cache") {
		t.Errorf("got %v", err)
	}
	if err := policy.Check(t.Context(), netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Errorf("allowed is allowed: %v", err)
	}
}

func TestThePolicyHoldsForTheAddressThatANameLeadsTo(t *testing.T) {
	e := listen(t, nil)
	_, port, err := net.SplitHostPort(e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f000001"} {
		got := once(t, cluster(), DialPolicy{}, Options{}, ask("q", "http://"+host+":"+port))
		if got.outcome != Failed {
			t.Errorf("%s: %+v", host, got)
		}
	}
	got := once(t, cluster(), DialPolicy{}, Options{}, ask("q", "http://localhost:"+port))
	if !strings.Contains(got.message, "a loopback address") {
		t.Errorf("got %q", got.message)
	}
	if heard := e.heard(); len(heard) != 0 {
		t.Errorf("reached: %+v", heard)
	}
}

func TestOnlyTCPIsDialled(t *testing.T) {
	for _, network := range []string{"unix", "udp4", "tcp"} {
		if err := loopback.control(t.Context(), network, "127.0.0.1:80", nil); err == nil {
			t.Errorf("%s is dialled", network)
		}
	}
	if err := loopback.control(t.Context(), "tcp4", "nowhere", nil); err == nil {
		t.Error("what is no address is dialled")
	}
	if err := loopback.control(t.Context(), "tcp4", "127.0.0.1:80", nil); err != nil {
		t.Error(err)
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

func FuzzThePolicyReadsEveryAddress(f *testing.F) {
	for _, a := range []string{"127.0.0.1", "::1", "fe80::1%1", "64:ff9b::1", "::ffff:0:0"} {
		f.Add(netip.MustParseAddr(a).AsSlice())
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		a, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		err := DialPolicy{}.Check(t.Context(), a)
		special := a.Unmap().IsLoopback() || a.Unmap().IsLinkLocalUnicast() || a.Unmap().IsMulticast() || a.Unmap().IsUnspecified()
		if special && err == nil {
			t.Errorf("%s is allowed", a)
		}
	})
}
