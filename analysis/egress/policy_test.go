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
	if err := policy.Check(t.Context(), netip.MustParseAddr("93.184.216.34")); err == nil || strings.Contains(err.Error(), "no cache") {
		t.Errorf("got %v", err)
	}
	if err := policy.Check(t.Context(), netip.MustParseAddr("127.0.0.1")); err != nil {
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
		err := Policy{}.Check(t.Context(), a)
		special := a.Unmap().IsLoopback() || a.Unmap().IsLinkLocalUnicast() || a.Unmap().IsMulticast() || a.Unmap().IsUnspecified()
		if special && err == nil {
			t.Errorf("%s is allowed", a)
		}
	})
}
