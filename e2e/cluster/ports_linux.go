// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// choosePorts finds ports that nobody listens on. Ports that were chosen before are
// kept, so that kubeconfig files stay valid, unless something else has taken one.
func (l *local) choosePorts(ctx context.Context) error {
	ports := &l.record.Ports
	for _, item := range []struct {
		program, address string
		port             *int
	}{
		{"kube-apiserver", nodeAddress, &l.record.APIServerPort},
		{"kubelet", nodeAddress, &ports.Kubelet},
		{"coredns", nodeAddress, &ports.DNS},
		{"kube-proxy", "127.0.0.1", &ports.ProxyHealth},
		{"kube-proxy", "127.0.0.1", &ports.ProxyMetrics},
	} {
		if l.record.Processes[item.program].Alive() {
			continue // it listens there itself
		}
		port, err := freePort(ctx, item.address, *item.port)
		if err != nil {
			return err
		}
		*item.port = port
	}
	return l.record.write()
}

// freePort returns wanted when it is free on the address, and otherwise another
// one. It has to be free for TCP and for UDP: DNS is served by both.
func freePort(ctx context.Context, address string, wanted int) (int, error) {
	if wanted != 0 && probePort(ctx, address, wanted) == nil {
		return wanted, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// probePort is an error when something listens there.
func probePort(ctx context.Context, address string, port int) error {
	var config net.ListenConfig
	where := net.JoinHostPort(address, strconv.Itoa(port))
	listener, err := config.Listen(ctx, "tcp", where)
	if err != nil {
		return err
	}
	packets, err := config.ListenPacket(ctx, "udp", where)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return errors.Join(listener.Close(), packets.Close())
}
