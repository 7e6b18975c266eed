// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/serin-dev/serin/analysis/egress"
)

func TestTheFlagsSayWhereRequestsMayGo(t *testing.T) {
	var o outboundOptions
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o.bind(flags)
	// The list of the node's addresses comes from the downward API with commas.
	err := flags.Parse([]string{"--outbound-allowed-cidrs=10.0.0.7/32,fd00::/64", "--outbound-allowed-cidrs=127.0.0.0/8", "--outbound-denied-cidrs=10.9.0.0/16", "--node-addresses=172.18.0.3,fc00:18::3"})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := o.policy()
	if err != nil {
		t.Fatal(err)
	}
	for address, allowed := range map[string]bool{
		"10.0.0.7": true, "fd00::9": true, "127.0.0.1": true, "10.0.0.8": true,
		"172.18.0.3": false, "fc00:18::3": false, "169.254.169.254": false, "172.18.0.4": true, "10.9.1.2": false,
	} {
		if err := policy.Check(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(address), 443), false); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestIPv4WrittenAsIPv6IsMeantByTheFlags(t *testing.T) {
	o := outboundOptions{denyCIDRs: []string{"::ffff:10.9.0.0/112"}, nodes: []string{"::ffff:172.18.0.3"}}
	policy, err := o.policy()
	if err != nil {
		t.Fatal(err)
	}
	for address, allowed := range map[string]bool{
		"10.9.1.2": false, "::ffff:10.9.1.2": false, "64:ff9b::10.9.1.2": false, "10.10.0.1": true, "172.18.0.3": false, "172.18.0.4": true,
	} {
		if err := policy.Check(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(address), 443), false); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWrongNetworksAreRefusedWithTheFlagsName(t *testing.T) {
	for _, test := range []struct {
		o    outboundOptions
		want string
	}{
		{outboundOptions{allowed: []string{"10.0.0.7"}}, "--outbound-allowed-cidrs"},
		{outboundOptions{onlyCIDRs: []string{"x"}}, "--outbound-only-cidrs"},
		{outboundOptions{denyCIDRs: []string{"fd00::/129"}}, "--outbound-denied-cidrs"},
		{outboundOptions{denyCIDRs: []string{"::ffff:10.0.0.0/95"}}, "--outbound-denied-cidrs"},
		{outboundOptions{onlyHosts: []string{"https://example.org"}}, "--outbound-only-hosts"},
		{outboundOptions{denyHosts: []string{"*"}}, "--outbound-denied-hosts"},
		{outboundOptions{nodes: []string{"node-1"}}, "--node-addresses"},
	} {
		if _, err := test.o.policy(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error with %q", err, test.want)
		}
	}
}

func TestThePortOfProxiesAndTheManagersOwnAddressesAreRefused(t *testing.T) {
	policy, err := (&outboundOptions{}).policy()
	if err != nil {
		t.Fatal(err)
	}
	if err := policy.Check(t.Context(), netip.MustParseAddrPort("10.0.0.1:15020"), false); err == nil || !strings.Contains(err.Error(), "port 15020") {
		t.Errorf("the port of proxies: %v", err)
	}
	own, err := ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(own, func(n egress.Network) bool { return n.IsSingleIP() && n.Addr().IsLoopback() }) {
		t.Errorf("loopback is not among %v", own)
	}
}

func TestTheAddressOfTheAPIServerIsReadFromItsURL(t *testing.T) {
	for host, want := range map[string]string{
		"https://10.96.0.1:443":    "10.96.0.1",
		"https://[fd00::1]:443":    "fd00::1",
		"https://[fd00::1]":        "fd00::1",
		"10.96.0.1:6443":           "10.96.0.1",
		"10.96.0.1":                "10.96.0.1",
		"[fd00::1]:6443":           "fd00::1",
		"https://api.example:6443": "",
		"localhost:8080":           "",
		"":                         "",
	} {
		var addresses []netip.Addr
		if want != "" {
			addresses = []netip.Addr{netip.MustParseAddr(want)}
		}
		if got := serverAddress(host); !slices.Equal(got, addresses) {
			t.Errorf("%s: %v, want %v", host, got, addresses)
		}
	}
}

// The system's authorities are read once in a process, so a process of its own
// looks for them where there are none.
func TestAuthoritiesAreBuiltInWhereTheSystemHasNone(t *testing.T) {
	const inside = "SERIN_TEST_WITHOUT_AUTHORITIES"
	if os.Getenv(inside) != "" {
		roots, err := publicRoots()
		if err != nil || roots.Equal(x509.NewCertPool()) {
			t.Fatalf("no authorities: %v", err)
		}
		return
	}
	none := filepath.Join(t.TempDir(), "none")
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$")
	again.Env = []string{inside + "=1", "SSL_CERT_FILE=" + none, "SSL_CERT_DIR=" + none}
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
