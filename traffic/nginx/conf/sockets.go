// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"github.com/serin-dev/serin/traffic"
)

// Socket is an address that nginx listens on. The agent opens it and hands it to
// one nginx after another, so that it is open throughout.
type Socket struct {
	// Network is "tcp" or "udp".
	Network string
	// Address is an IP address and a port, as in net.JoinHostPort.
	Address string
}

// sockets reads back from a configuration what it listens on. A socket that was
// left out would be opened by nginx itself, which fails while another nginx has
// it; so they are read from the very text.
func sockets(config []byte) []Socket {
	var out []Socket
	for line := range bytes.Lines(config) {
		words := strings.Fields(strings.TrimRight(string(line), ";\n"))
		if len(words) < 2 || words[0] != "listen" || strings.HasPrefix(words[1], "unix:") {
			continue
		}
		s := Socket{Network: "tcp", Address: strings.Trim(words[1], `"`)}
		if slices.Contains(words[2:], "udp") {
			s.Network = "udp"
		}
		if !strings.Contains(s.Address, ":") {
			s.Address = "0.0.0.0:" + s.Address
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

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
