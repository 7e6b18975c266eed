// SPDX-License-Identifier: Apache-2.0

package sockets

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// backlog is how many connections wait to be accepted, while an nginx is started
// anew for one.
const backlog = 4096

// Sockets are what clients connect to. They belong to the agent and its fd store and
// are lent to one nginx after another, so none is ever closed while it is
// wanted, and what arrives between two of them waits.
type Sockets struct {
	files  fdstore.Store
	listen func(conf.Socket) (int, error)
	open   map[conf.Socket]int
}

// New begins with those that a previous agent left.
func New(files fdstore.Store, listen func(conf.Socket) (int, error)) *Sockets {
	s := &Sockets{files: files, listen: listen, open: map[conf.Socket]int{}}
	for name, fd := range files.Kept() {
		if rest, ok := strings.CutPrefix(name, fdstore.SocketPrefix); ok {
			network, address, _ := strings.Cut(rest, " ")
			s.open[conf.Socket{Network: network, Address: address}] = fd
		}
	}
	return s
}

// Lend returns the descriptors of some sockets, and opens those that are not open.
func (s *Sockets) Lend(wanted []conf.Socket) ([]int, error) {
	var fds []int
	for _, socket := range wanted {
		fd, ok := s.open[socket]
		if !ok {
			var err error
			if fd, err = s.listen(socket); err != nil {
				return nil, fmt.Errorf("listen on %s %s: %w", socket.Network, socket.Address, err)
			}
			s.open[socket] = fd
			if err := s.files.Keep(keptName(socket), fd); err != nil {
				return nil, err
			}
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// Inherited reports whether any are open, as they are when a previous agent left them.
func (s *Sockets) Inherited() bool { return len(s.open) > 0 }

// CloseAllBut closes the sockets that are not wanted any more.
func (s *Sockets) CloseAllBut(wanted []conf.Socket) error {
	var errs []error
	for socket := range s.open {
		if !slices.Contains(wanted, socket) {
			errs = append(errs, s.Close(socket))
		}
	}
	return errors.Join(errs...)
}

// Close closes a socket. One that is not open is left as it is.
func (s *Sockets) Close(socket conf.Socket) error {
	fd, ok := s.open[socket]
	if !ok {
		return nil
	}
	fdstore.Close(fd)
	delete(s.open, socket)
	return s.files.Drop(keptName(socket))
}

func keptName(s conf.Socket) string { return fdstore.SocketPrefix + s.Network + " " + s.Address }

// Listen opens a socket as nginx would.
func Listen(socket conf.Socket) (int, error) {
	address, err := netip.ParseAddrPort(socket.Address)
	if err != nil {
		return 0, err
	}
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: int(address.Port())}
	if address.Addr().Is4() {
		to.(*unix.SockaddrInet4).Addr = address.Addr().As4()
	} else {
		family = unix.AF_INET6
		to = &unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()}
	}
	if socket.Network == "udp" {
		kind = unix.SOCK_DGRAM
	}
	syscall.ForkLock.RLock() // a child must not inherit it before it is marked
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	if err := bind(fd, family, to, kind); err != nil {
		fdstore.Close(fd)
		return 0, err
	}
	return fd, nil
}

// bind gives a new socket its address and options.
func bind(fd, family int, to unix.Sockaddr, kind int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if family == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	if err := unix.Bind(fd, to); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if kind == unix.SOCK_STREAM {
		return os.NewSyscallError("listen", unix.Listen(fd, backlog))
	}
	return nil
}
