// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
)

// Policy says where requests may go. It is asked with the address that a host
// name was resolved to, in the moment of the connection, so that a name can't
// change its meaning in between.
//
// Refused are the operator's own host and neighbourhood: loopback, link-local,
// unspecified, multicast and broadcast addresses, those where clouds serve metadata
// and credentials, the API server's, those of nodes, and what Refused adds. The
// addresses of pods and Services are allowed: that is where most endpoints are.
//
// What the cluster admin writes comes first: Denied holds for everything, Only for
// everything when it is not empty. Neither opens what is refused; Allowed does.
type Policy struct {
	// Allowed networks are reached in spite of all that is refused.
	Allowed []netip.Prefix
	// Refused networks in addition to those that always are.
	Refused []Network
	// Denied destinations are never reached.
	Denied Destinations
	// Only these destinations are reached; when empty, all that are not refused.
	Only Destinations
	// Ports that are refused at every address that is not in Allowed, and what they are.
	Ports map[uint16]string
	// APIServer returns the addresses of the cluster's API server. When it fails, no
	// connection is made to what is not in Allowed. Nil when there is none to protect.
	APIServer func(context.Context) ([]netip.Addr, error)
	// Nodes returns the addresses of the cluster's nodes, as APIServer does.
	Nodes func(context.Context) ([]netip.Addr, error)
}

// Network is one that is refused, and what it is, for users: "a loopback address".
type Network struct {
	netip.Prefix
	Kind string
}

// Destinations are hosts by their names and networks by their addresses.
type Destinations struct {
	Hosts    Hosts
	Networks []netip.Prefix
}

// Unlisted is the policy for what a cluster admin names: the lists of what users may
// reach do not hold, and all that is refused otherwise does.
func (p Policy) Unlisted() Policy {
	p.Denied, p.Only = Destinations{}, Destinations{}
	return p
}

func (d Destinations) empty() bool { return len(d.Hosts) == 0 && len(d.Networks) == 0 }

// RefusedError is a request that the policy does not allow.
type RefusedError struct {
	// Destination is the host of the URL or the address that it leads to.
	Destination string
	// Kind of the destination, for users.
	Kind string
	// Setting of the chart that refuses it, or that would allow it.
	Setting string
}

func (e *RefusedError) Error() string {
	switch e.Setting {
	case settingAllowed:
		return fmt.Sprintf("leads to %s, %s, which is refused unless the operator is installed with %s for it", e.Destination, e.Kind, e.Setting)
	case settingOnly:
		return fmt.Sprintf("leads to %s, which %s of the operator's installation does not name", e.Destination, e.Setting)
	default:
		return fmt.Sprintf("leads to %s, which %s of the operator's installation refuses", e.Destination, e.Setting)
	}
}

// The values of the chart that decide.
const (
	settingAllowed     = "outbound.allowedCIDRs"
	settingOnly        = "outbound.onlyHosts or outbound.onlyCIDRs"
	settingDeniedHosts = "outbound.deniedHosts"
	settingDeniedCIDRs = "outbound.deniedCIDRs"
)

// Check returns a RefusedError when no connection may be made to an address. Named is
// whether the host that led there is one of Only.
func (p Policy) Check(ctx context.Context, target netip.AddrPort, named bool) error {
	address := plain(target.Addr())
	all := meanings(address)
	refuse := func(kind, setting string) error {
		return &RefusedError{Destination: address.String(), Kind: kind, Setting: setting}
	}
	switch {
	case slices.ContainsFunc(all, func(a netip.Addr) bool { return within(p.Denied.Networks, a) }):
		return refuse("", settingDeniedCIDRs)
	case slices.ContainsFunc(all, func(a netip.Addr) bool { return p.Denied.Hosts.matchAddress(a, target.Port()) }):
		return refuse("", settingDeniedHosts)
	case !p.Only.empty() && !named && !within(p.Only.Networks, address):
		return refuse("", settingOnly)
	case within(p.Allowed, address):
		return nil
	}
	if kind := p.Ports[target.Port()]; kind != "" {
		return refuse(fmt.Sprintf("port %d, %s", target.Port(), kind), settingAllowed)
	}
	own, err := p.cluster(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		if kind := p.kind(a, own); kind != "" {
			return refuse(kind, settingAllowed)
		}
	}
	return nil
}

// cluster finds the addresses of the cluster itself.
func (p Policy) cluster(ctx context.Context) (own []Network, err error) {
	for _, of := range []struct {
		list    func(context.Context) ([]netip.Addr, error)
		kind    string
		unknown error
	}{
		{p.APIServer, "an address of the API server", errUnknownServer},
		{p.Nodes, "an address of a node", errUnknownNodes},
	} {
		if of.list == nil {
			continue
		}
		addresses, err := of.list(ctx)
		if err != nil {
			return nil, of.unknown
		}
		for _, a := range addresses {
			own = append(own, OneAddress(a, of.kind))
		}
	}
	return own, nil
}

// kind says why an address is refused; "" when it is not.
func (p Policy) kind(a netip.Addr, own []Network) string {
	for _, list := range [][]Network{reserved, own, p.Refused} {
		for _, n := range list {
			if n.Contains(a) {
				return n.Kind
			}
		}
	}
	return ""
}

// checkHost returns a RefusedError for a host that may not be called, whatever its
// address is.
func (p Policy) checkHost(u *url.URL) error {
	host, port := Host(u)
	switch {
	case p.Denied.Hosts.matchAny(host, port):
		return &RefusedError{Destination: short(host), Setting: settingDeniedHosts}
	case !p.Only.empty() && len(p.Only.Networks) == 0 && !p.Only.Hosts.match(host, port):
		return &RefusedError{Destination: short(host), Setting: settingOnly}
	default:
		return nil
	}
}

// named is whether Only names a host.
func (p Policy) named(host, port string) bool { return p.Only.Hosts.match(canonical(host), port) }

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Reasons that do not depend on the address.
const (
	errUnknownServer = ownError("the addresses of the API server are not known, so no connection is made")
	errUnknownNodes  = ownError("the addresses of the nodes are not known, so no connection is made")
	errNoTCP         = ownError("leads to no TCP address")
)

// control is called by the dialer for each address before it connects.
func (p Policy) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return errNoTCP
	}
	named, _ := ctx.Value(namedKey{}).(bool)
	return p.Check(ctx, target, named)
}

// namedKey is the key of what is known about the host while its addresses are tried.
type namedKey struct{}
