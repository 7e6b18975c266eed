// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"net/netip"
	"slices"

	"github.com/serin-dev/serin/traffic"
)

// DatagramListener is a UDP port as a proxy serves it. The agent does, and not
// nginx, which drops the answers that are on their way when it is replaced.
type DatagramListener struct {
	Listener
	// Sockets that it listens on, one for each family of addresses.
	Sockets []Socket
}

// datagrams are the listeners of UDP.
func datagrams(listeners []Listener, ipv6 bool) []DatagramListener {
	var out []DatagramListener
	for _, l := range listeners {
		if l.Port.Protocol != traffic.ProtocolUDP {
			continue
		}
		d := DatagramListener{Listener: l}
		families := []netip.Addr{netip.IPv4Unspecified()}
		if ipv6 {
			families = append(families, netip.IPv6Unspecified())
		}
		for _, family := range families {
			address := netip.AddrPortFrom(family, uint16(l.Number)) //nolint:gosec // checked by Listeners
			d.Sockets = append(d.Sockets, Socket{Network: "udp", Address: address.String()})
		}
		out = append(out, d)
	}
	return out
}

// Open are all sockets that a proxy listens on for clients.
func (r Rendering) Open() []Socket {
	all := slices.Clone(r.Sockets)
	for _, d := range r.Datagrams {
		all = append(all, d.Sockets...)
	}
	return all
}
