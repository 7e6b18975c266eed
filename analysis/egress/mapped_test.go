// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func mustNetworks(t *testing.T, list ...string) []netip.Prefix {
	t.Helper()
	networks, err := ParseNetworks(list)
	if err != nil {
		t.Fatal(err)
	}
	return networks
}

// spellings are how else 10.0.0.1 is written, or reached through what translates IPv6.
var spellings = []string{
	"10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1", "::ffff:10.0.0.1%eth0", "::10.0.0.1", "::ffff:0:10.0.0.1",
	"64:ff9b::10.0.0.1", "64:ff9b::a00:1%eth0", "64:ff9b:1::10.0.0.1", "2002:a00:1::", "2002:a00:1::1%eth0", "fd00::5efe:10.0.0.1",
}

func TestWhatIsRefusedIsRefusedInEverySpelling(t *testing.T) {
	list := func(text string) func(context.Context) ([]netip.Addr, error) {
		return func(context.Context) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(text)}, nil }
	}
	for name, policy := range map[string]Policy{
		"a denied network":                       {Denied: Destinations{Networks: mustNetworks(t, "10.0.0.0/8")}},
		"a denied network that is mapped":        {Denied: Destinations{Networks: mustNetworks(t, "::ffff:10.0.0.0/104")}},
		"a denied network, mapped, in hex":       {Denied: Destinations{Networks: mustNetworks(t, "::FFFF:A00:0/104")}},
		"all of IPv4, mapped":                    {Denied: Destinations{Networks: mustNetworks(t, "::ffff:0:0/96")}},
		"a denied address":                       {Denied: Destinations{Hosts: parsed(t, "10.0.0.1")}},
		"a denied address and port":              {Denied: Destinations{Hosts: parsed(t, "10.0.0.1:80")}},
		"a denied address that is mapped":        {Denied: Destinations{Hosts: parsed(t, "[::ffff:10.0.0.1]:80")}},
		"the API server":                         {APIServer: list("10.0.0.1")},
		"the API server, known by its mapped IP": {APIServer: list("::ffff:10.0.0.1")},
		"a node":                                 {Nodes: list("10.0.0.1")},
		"a node, known by its mapped IP":         {Nodes: list("::ffff:10.0.0.1%eth0")},
		"a node of the flag, mapped":             {Refused: []Network{OneAddress(netip.MustParseAddr("::ffff:10.0.0.1"), "an address of a node")}},
	} {
		for _, spelling := range spellings {
			if err := policy.Check(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(spelling), 80), false); !IsRefused(err) {
				t.Errorf("%s: %s is reached: %v", name, spelling, err)
			}
		}
		if err := policy.Check(t.Context(), netip.MustParseAddrPort("[2606:2800:220:1::1]:80"), false); err != nil {
			t.Errorf("%s: another address: %v", name, err)
		}
	}
}

func TestMetadataIsRefusedInEverySpelling(t *testing.T) {
	for _, address := range []string{
		"169.254.169.254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe%1", "64:ff9b::169.254.169.254", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254",
		"fd00:ec2::254", "fd00:ec2::254%eth0", "fd00:ec2:0:0::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200",
		"64:ff9b::100.100.100.200", "::ffff:168.63.129.16", "fe80::a9fe:a9fe%eth0", "::ffff:127.0.0.1%lo", "64:ff9b::127.0.0.1", "::1%lo", "2002:7f00:1::",
	} {
		// A name of Only leads anywhere, and a network of it holds every address.
		for _, only := range []Destinations{{}, {Networks: mustNetworks(t, "0.0.0.0/0", "::/0")}, {Hosts: parsed(t, "example.org")}} {
			if err := (Policy{Only: only}).Check(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(address), 80), true); !IsRefused(err) {
				t.Errorf("%s is reached: %v", address, err)
			}
		}
	}
}

func TestAMappedNetworkAllowsWhatItMeans(t *testing.T) {
	policy := Policy{Allowed: mustNetworks(t, "::ffff:127.0.0.0/104"), Only: Destinations{Networks: mustNetworks(t, "::ffff:127.0.0.1/128")}}
	for address, want := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false, "64:ff9b::127.0.0.1": false, "::1": false} {
		if err := policy.Check(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(address), 80), false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestADeniedAddressIsDeniedAsTheHostOfAURL(t *testing.T) {
	policy := Policy{Denied: Destinations{Hosts: parsed(t, "::ffff:10.0.0.1", "[fd00::7]:80")}}
	for _, host := range []string{"10.0.0.1:80", "[::ffff:a00:1]:80", "[::ffff:10.0.0.1%25eth0]:80", "[fd00:0::7]:80", "[fd00::7%25eth0]"} {
		u, err := url.Parse("http://" + host)
		if err != nil {
			t.Fatal(err)
		}
		if err := policy.checkHost(u); !IsRefused(err) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestNetworksThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7":               "is not a network",
		"fd00::/129":             "is not a network",
		"10.0.0.0/33":            "is not a network",
		"fe80::%eth0/64":         "is not a network",
		"::ffff:10.0.0.0/95":     "write it as IPv4",
		"::ffff:0:0/0":           "write it as IPv4",
		"::ffff:10.0.0.0/129":    "is not a network",
		"":                       "is not a network",
		strings.Repeat("1", 300): "is not a network",
	} {
		if _, err := ParseNetworks([]string{text}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRequestsMakeNoListAgain(t *testing.T) {
	hosts := parsed(t, "a.monitoring.svc", "*.b.svc.cluster.local", "example.org:8443", "10.0.0.1")
	if n := testing.AllocsPerRun(100, func() {
		if hosts.matchAny("prometheus.monitoring.svc", "9090") || !hosts.matchAny("a.monitoring", "9090") {
			t.Error("the wrong hosts are denied")
		}
	}); n > 0 {
		t.Errorf("%v allocations for each request", n)
	}
}
