// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"bytes"
	"slices"
	"strings"
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
