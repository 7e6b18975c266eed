// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/netip"
)

// mappedBits is the length of ::ffff:0:0/96, whose addresses are those of IPv4.
const mappedBits = 96

// ParseNetworks reads networks like 10.1.0.0/16 or fd00::/64. One of IPv4 that is written as
// IPv6, like ::ffff:10.1.0.0/112, is the one of IPv4.
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	networks := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		n, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is not a network; write one such as 10.1.0.0/16 or fd00::/64", short(text))
		case n.Addr().Is4In6() && n.Bits() < mappedBits:
			return nil, fmt.Errorf("%q is an IPv4 address in a wider IPv6 network; write it as IPv4, like 10.1.0.0/16", text)
		case n.Addr().Is4In6():
			n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-mappedBits)
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// OneAddress is the network of an address, in the form in which addresses are compared.
func OneAddress(a netip.Addr, kind string) Network {
	a = plain(a)
	return Network{Prefix: netip.PrefixFrom(a, a.BitLen()), Kind: kind}
}

// plain is an address without its zone, and as IPv4 where it is a mapped one.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// reserved are networks that no request may reach, and why.
var reserved = []Network{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local or metadata address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata address"}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata address"},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), "a metadata address"},     // Oracle Cloud
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "a metadata address"},          // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), "a metadata address"},       // Google Cloud
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "a metadata address"}, // Oracle Cloud
	{netip.MustParsePrefix("fd00:100::100:200/128"), "a metadata address"},  // Alibaba Cloud
	{netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), "a metadata address"},  // Akamai
	{netip.MustParsePrefix("fd00:42::42/128"), "a metadata address"},        // Scaleway
	{netip.MustParsePrefix("2001::/32"), "a Teredo address"},                // RFC 4380 hides an IPv4 address in it
}

// embedding are the networks whose addresses hold an IPv4 address that a gateway
// may translate to, and the bytes where it is.
var embedding = []struct {
	network netip.Prefix
	at      [][4]int
}{
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},           // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [][4]int{{12, 13, 14, 15}}}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), [][4]int{{12, 13, 14, 15}}},    // NAT64, RFC 6052
	// NAT64 for local use, RFC 8215, where the length of the prefix is 48, 56, 64 or 96.
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}},
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}}, // 6to4, RFC 3056
}

// isatap are bytes 8 to 11 of an address of RFC 5214, without the bits that say whether
// the IPv4 address after them is unique.
var isatap = [4]byte{0x00, 0x00, 0x5e, 0xfe}

// meanings are an address and the IPv4 addresses that it may hold.
func meanings(a netip.Addr) []netip.Addr {
	list := []netip.Addr{a}
	if a.Is4() {
		return list
	}
	bytes := a.As16()
	four := func(at [4]int) netip.Addr {
		return netip.AddrFrom4([4]byte{bytes[at[0]], bytes[at[1]], bytes[at[2]], bytes[at[3]]})
	}
	if [4]byte{bytes[8] &^ 3, bytes[9], bytes[10], bytes[11]} == isatap {
		list = append(list, four([4]int{12, 13, 14, 15}))
	}
	for _, e := range embedding {
		if !e.network.Contains(a) {
			continue
		}
		for i, at := range e.at {
			// The bytes of a shorter prefix are zero where a longer one is used.
			if got := four(at); i == len(e.at)-1 || !unspecified.Contains(got) {
				list = append(list, got)
			}
		}
	}
	return list
}

var unspecified = netip.MustParsePrefix("0.0.0.0/8")
