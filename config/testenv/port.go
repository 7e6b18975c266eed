// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// given are the ports that FreePort returned: no two tests of a process get the same.
var given sync.Map

// FreePort is free for TCP and UDP, at each IPv4 address. It is none of those that Linux gives
// to clients, since one of them could have it by the time that it is listened on, and not the
// proxy's own, 15020.
func FreePort(ctx context.Context) (int32, error) {
	var listen net.ListenConfig
	for range 100 {
		port := 16000 + rand.Int32N(14000) //nolint:gosec // no secret
		if _, before := given.LoadOrStore(port, true); before {
			continue
		}
		address := fmt.Sprintf("0.0.0.0:%d", port)
		stream, err := listen.Listen(ctx, "tcp", address)
		if err != nil {
			continue
		}
		datagrams, err := listen.ListenPacket(ctx, "udp", address)
		if closeErr := stream.Close(); closeErr != nil {
			return 0, closeErr
		}
		if err != nil {
			continue
		}
		return port, datagrams.Close()
	}
	return 0, errors.New("none of a hundred ports is free")
}
