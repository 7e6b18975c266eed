// SPDX-License-Identifier: Apache-2.0

package sockets

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/proxy/fdstore"
	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// store is an fd store in memory.
type store map[string]int

func (s store) Kept() map[string]int           { return maps.Clone(s) }
func (s store) Keep(name string, fd int) error { s[name] = fd; return nil }
func (s store) Drop(name string) error         { delete(s, name); return nil }

func null(conf.Socket) (int, error) { return unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0) }

func socket(port int) conf.Socket {
	return conf.Socket{Network: "tcp", Address: fmt.Sprintf("0.0.0.0:%d", port)}
}

func TestASocketIsOpenedOnceAndOutlivesTheAgent(t *testing.T) {
	files := store{"status": 99}
	s := New(files, null)
	if s.Inherited() {
		t.Error("what is kept for others is taken for a socket")
	}
	first, err := s.Lend([]conf.Socket{socket(80), socket(81)})
	if err != nil {
		t.Fatal(err)
	}
	next := New(files, func(conf.Socket) (int, error) { return 0, errors.New("must not be opened again") })
	again, err := next.Lend([]conf.Socket{socket(81), socket(80)})
	if err != nil || !next.Inherited() {
		t.Fatal(err)
	}
	slices.Reverse(again)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the next agent has others (-want +got):\n%s", diff)
	}
	if err := next.CloseAllBut([]conf.Socket{socket(81)}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(store{"status": 99, fdstore.SocketPrefix + "tcp 0.0.0.0:81": first[1]}, files); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if _, err := unix.FcntlInt(uintptr(first[0]), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("a socket that is not wanted any more is open: %v", err)
	}
	if err := errors.Join(next.Close(socket(81)), next.Close(socket(4711))); err != nil || next.Inherited() {
		t.Errorf("%v", err)
	}
}

func TestListeningSocketsAreOfOneFamilyAndTakeNobodysPort(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		port := proxytest.FreePort(t)
		for _, host := range []string{"0.0.0.0", "[::]"} { // both at once
			fd, err := Listen(conf.Socket{Network: network, Address: fmt.Sprintf("%s:%d", host, port)})
			if err != nil {
				t.Fatalf("%s %s: %v", network, host, err)
			}
			defer fdstore.Close(fd)
		}
	}
	taken, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // ends with the test
	if _, err := Listen(conf.Socket{Network: "tcp", Address: taken.Addr().String()}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a port that is taken: %v", err)
	}
	for _, address := range []string{"", "80", "localhost:80", "10.0.0.1:port"} {
		if _, err := Listen(conf.Socket{Network: "tcp", Address: address}); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}
