// SPDX-License-Identifier: Apache-2.0

package udp

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/serin-dev/serin/traffic"
)

// draw shares sessions among backends.
type draw struct {
	backends []drawn
	total    int64
}

// drawn is one backend of a draw.
type drawn struct {
	service string
	address netip.AddrPort
	// until is the sum of the weights up to this one.
	until int64
}

// makeDraw prepares the draw of a port whose destinations conf.Render has checked.
func makeDraw(port traffic.Port) *draw {
	d := &draw{}
	for _, destination := range port.Destinations {
		address, err := netip.ParseAddrPort(net.JoinHostPort(destination.Address, strconv.Itoa(int(destination.Port))))
		if err != nil || destination.Weight <= 0 {
			continue
		}
		d.add(destination.Service, address, int64(destination.Weight))
	}
	return d
}

// add gives a backend its share.
func (d *draw) add(service string, address netip.AddrPort, weight int64) {
	d.total += weight
	d.backends = append(d.backends, drawn{service, address, d.total})
}

// has reports whether a backend has a share.
func (d *draw) has(address netip.AddrPort) bool {
	return slices.ContainsFunc(d.backends, func(b drawn) bool { return b.address == address })
}

// pick is the backend of the number n, from 0 to total-1.
func (d *draw) pick(n int64) drawn {
	for _, b := range d.backends {
		if n < b.until {
			return b
		}
	}
	panic("a number that is not below the total") // only from within this package
}
