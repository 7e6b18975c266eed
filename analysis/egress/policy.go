// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Policy says where requests may go. It is asked with the address that a host
// name was resolved to, in the moment of the connection, so that a name can't
// change its meaning in between.
//
// Refused are the operator's own host and neighbourhood: loopback, link-local,
// unspecified, multicast and broadcast addresses, those where clouds serve metadata
// and credentials, the API server's, and what Refused adds. The addresses of pods
// and Services are allowed: that is where most endpoints are.
type Policy struct {
	// Allowed networks are reached in spite of all that is refused.
	Allowed []netip.Prefix
	// Refused networks in addition to those that always are, for instance the node's address.
	Refused []netip.Prefix
	// APIServer returns the addresses of the cluster's API server. When it fails, no
	// connection is made to what is not in Allowed. Nil when there is none to protect.
	APIServer func(context.Context) ([]netip.Addr, error)
}

// RefusedAddressError is a connection that the policy does not allow.
type RefusedAddressError struct {
	Address netip.Addr
	// Kind of the address, for users.
	Kind string
}

func (e *RefusedAddressError) Error() string {
	return fmt.Sprintf("leads to %s, %s, which is refused unless the operator is installed with outbound.allowedCIDRs for it", e.Address, e.Kind)
}

// reserved are networks that no request may reach, and why.
var reserved = []struct {
	network netip.Prefix
	kind    string
}{
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
	{netip.MustParsePrefix("fd00:ec2::/32"), "a metadata address"},    // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), "a metadata address"}, // Google Cloud
}

// embedding are the networks whose addresses hold an IPv4 address that a gateway
// may translate to, and the byte where it begins.
var embedding = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("::/96"), 12},          // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 for local use, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4, RFC 3056
}

// Check returns a RefusedAddressError when no connection may be made to an address.
func (p Policy) Check(ctx context.Context, address netip.Addr) error {
	address = address.Unmap().WithZone("")
	if within(p.Allowed, address) {
		return nil
	}
	var server []netip.Addr
	if p.APIServer != nil {
		var err error
		if server, err = p.APIServer(ctx); err != nil {
			return errUnknownServer
		}
	}
	for _, a := range meanings(address) {
		if kind := p.kind(a, server); kind != "" {
			return &RefusedAddressError{Address: address, Kind: kind}
		}
	}
	return nil
}

// kind says why an address is refused; "" when it is not.
func (p Policy) kind(a netip.Addr, server []netip.Addr) string {
	for _, r := range reserved {
		if r.network.Contains(a) {
			return r.kind
		}
	}
	switch {
	case slices.Contains(server, a):
		return "an address of the API server"
	case within(p.Refused, a):
		return "an address that the operator's configuration refuses"
	default:
		return ""
	}
}

// meanings are an address and the IPv4 address that it holds.
func meanings(a netip.Addr) []netip.Addr {
	list := []netip.Addr{a}
	for _, e := range embedding {
		if e.network.Contains(a) {
			bytes := a.As16()
			list = append(list, netip.AddrFrom4([4]byte(bytes[e.at:e.at+4])))
		}
	}
	return list
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Reasons that do not depend on the address.
const (
	errUnknownServer = ownError("the addresses of the API server are not known, so that no connection is made")
	errNoTCP         = ownError("leads to no TCP address")
)

// control is called by the dialer for each address before it connects.
func (p Policy) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return errNoTCP
	}
	return p.Check(ctx, target.Addr())
}
