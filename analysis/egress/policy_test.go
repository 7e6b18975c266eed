// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

var loopback = Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

func TestWhereRequestsMayGo(t *testing.T) {
	policy := Policy{
		Allowed: []netip.Prefix{netip.MustParsePrefix("169.254.7.0/24"), netip.MustParsePrefix("10.0.0.0/24")},
		Refused: []Network{{netip.MustParsePrefix("192.168.7.7/32"), "an address of the operator"}, {netip.MustParsePrefix("10.0.0.7/32"), "an address of the operator"}},
		Nodes: func(context.Context) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("172.18.0.9"), netip.MustParseAddr("fc00:18::9")}, nil
		},
		APIServer: func(context.Context) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:10:96::1"), netip.MustParseAddr("172.18.0.2")}, nil
		},
	}
	for address, want := range map[string]string{
		"93.184.216.34":                  "",
		"10.244.1.7":                     "",
		"10.96.0.10":                     "",
		"2606:2800:220:1::1":             "",
		"fd00:10:244::7":                 "",
		"0.0.0.0":                        "an unspecified address",
		"0.1.2.3":                        "an unspecified address",
		"127.0.0.1":                      "a loopback address",
		"127.255.255.254":                "a loopback address",
		"::1":                            "a loopback address",
		"::":                             "an unspecified address",
		"::ffff:127.0.0.1":               "a loopback address",
		"::127.0.0.1":                    "a loopback address",
		"64:ff9b::7f00:1":                "a loopback address",
		"64:ff9b::a9fe:a9fe":             "a link-local or metadata address",
		"64:ff9b:1::a9fe:a9fe":           "a link-local or metadata address",
		"64:ff9b::5db8:d822":             "",
		"64:ff9b:1::5db8:d822":           "",
		"64:ff9b:1:a9fe:a9:fe00:101:101": "a link-local or metadata address",
		"64:ff9b:1:a9:fe:a9fe:101:101":   "a link-local or metadata address",
		"64:ff9b:1:0:a9:fea9:fe01:101":   "a link-local or metadata address",
		"::ffff:0:127.0.0.1":             "a loopback address",
		"fd00::5efe:127.0.0.1":           "a loopback address",
		"fd00::200:5efe:169.254.169.254": "a link-local or metadata address",
		"2001::8000:f227:5601:5601":      "a Teredo address",
		"172.18.0.9":                     "an address of a node",
		"64:ff9b::172.18.0.9":            "an address of a node",
		"2002:ac12:9::":                  "an address of a node",
		"fc00:18::9":                     "an address of a node",
		"fc00:18::a":                     "",
		"2002:a9fe:a9fe::1":              "a link-local or metadata address",
		"169.254.169.254":                "a link-local or metadata address",
		"169.254.170.2":                  "a link-local or metadata address",
		"fe80::1%eth0":                   "a link-local address",
		"fd00:ec2::254":                  "a metadata address",
		"fd20:ce::254":                   "a metadata address",
		"100.100.100.200":                "a metadata address",
		"168.63.129.16":                  "a metadata address",
		"224.0.0.1":                      "a multicast address",
		"ff02::1":                        "a multicast address",
		"255.255.255.255":                "a broadcast address",
		"10.96.0.1":                      "an address of the API server",
		"::ffff:10.96.0.1":               "an address of the API server",
		"fd00:10:96::1":                  "an address of the API server",
		"172.18.0.2":                     "an address of the API server",
		"192.168.7.7":                    "an address of the operator",
		"169.254.7.9":                    "",
		"::ffff:169.254.7.9":             "",
		"10.0.0.7":                       "",
	} {
		t.Run(address, func(t *testing.T) {
			err := policy.Check(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(address), 80), false)
			var refused *RefusedError
			if want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &refused) || refused.Kind != want {
				t.Fatalf("got %v, want %s", err, want)
			}
			if !strings.Contains(err.Error(), "outbound.allowedCIDRs") || len(err.Error()) > 200 {
				t.Errorf("the message does not say briefly what to do: %v", err)
			}
		})
	}
}

func TestWithoutKnowingTheAPIServerNothingIsConnected(t *testing.T) {
	policy := Policy{
		Allowed:   loopback.Allowed,
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, errors.New("no cache") },
	}
	if err := policy.Check(t.Context(), netip.MustParseAddrPort("93.184.216.34:80"), false); err == nil || strings.Contains(err.Error(), "no cache") {
		t.Errorf("got %v", err)
	}
	if err := policy.Check(t.Context(), netip.MustParseAddrPort("127.0.0.1:80"), false); err != nil {
		t.Errorf("allowed is allowed: %v", err)
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

func FuzzThePolicyReadsEveryAddress(f *testing.F) {
	for _, a := range []string{"127.0.0.1", "::1", "fe80::1%1", "64:ff9b::1", "::ffff:0:0"} {
		f.Add(netip.MustParseAddr(a).AsSlice())
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		a, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		err := Policy{}.Check(t.Context(), netip.AddrPortFrom(a, 80), false)
		special := a.Unmap().IsLoopback() || a.Unmap().IsLinkLocalUnicast() || a.Unmap().IsMulticast() || a.Unmap().IsUnspecified()
		if special && err == nil {
			t.Errorf("%s is allowed", a)
		}
	})
}
