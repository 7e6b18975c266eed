// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
)

const (
	// maxClusters is how many clusters have networks of their own on one machine.
	maxClusters = 256
	// minRouteBits tells routes to a network from those that lead everywhere else,
	// over which the longer prefixes of a cluster win.
	minRouteBits = 9
)

// networks are those of one cluster. They exist on this machine only.
type networks struct {
	// link is the machine's end of the link to the cluster's namespace.
	link string
	// machine and node are the addresses of the two ends.
	machine, node netip.Prefix
	// pods and services are where pods and Services get their addresses from.
	pods, services netip.Prefix
	// api and dns are the addresses of the Services of the API server and of DNS.
	api, dns netip.Addr
}

// makeNetworks returns the networks of the cluster with that number.
func makeNetworks(number int) networks {
	n := byte(number) //nolint:gosec // there are at most maxClusters
	services := netip.AddrFrom4([4]byte{10, 96 + n/16, n % 16 * 16, 0})
	at := func(last byte) netip.Addr {
		base := services.As4()
		return netip.AddrFrom4([4]byte{base[0], base[1], base[2], last})
	}
	return networks{
		link:     fmt.Sprintf("serin%d", number),
		machine:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 243, n, 1}), 30),
		node:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 243, n, 2}), 30),
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, n, 0}), 24),
		services: netip.PrefixFrom(services, 20),
		api:      at(1), // Kubernetes takes the first
		dns:      at(10),
	}
}

// overlap returns the first of the prefixes that overlaps one of the networks.
func (n networks) overlap(prefixes []netip.Prefix) (taken netip.Prefix, found bool) {
	for _, prefix := range prefixes {
		if prefix.Overlaps(n.node) || prefix.Overlaps(n.pods) || prefix.Overlaps(n.services) {
			return prefix, true
		}
	}
	return netip.Prefix{}, false
}

// freeNumber returns the lowest number that no cluster has and whose networks
// overlap none of the prefixes.
func (m *machine) freeNumber(taken []netip.Prefix) (int, error) {
	numbers := slices.Collect(maps.Values(m.Clusters))
	var last netip.Prefix
	for number := range maxClusters {
		if slices.Contains(numbers, number) {
			continue
		}
		prefix, overlaps := makeNetworks(number).overlap(taken)
		if !overlaps {
			return number, nil
		}
		last = prefix
	}
	return 0, &NotPossibleError{
		Reason: fmt.Sprintf("no networks are free for one more cluster: %d clusters have some, and this machine uses %s", len(numbers), last),
		Remedy: "stop what uses it, or name an existing cluster with " + KubeconfigVariable,
	}
}

// takenPrefixes lists the networks that this machine is in or has routes to.
func takenPrefixes(ctx context.Context) ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of the machine: %w", err)
	}
	output, err := run(ctx, "ip", "-json", "-4", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	taken, err := parseRoutes(output)
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			taken = append(taken, prefix)
		}
	}
	return taken, err
}

// parseRoutes reads the destinations that ip prints: networks, and addresses without a length.
func parseRoutes(output string) ([]netip.Prefix, error) {
	var routes []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal([]byte(output), &routes); err != nil {
		return nil, fmt.Errorf("read the routes of the machine: %w", err)
	}
	var prefixes []netip.Prefix
	for _, route := range routes {
		prefix, err := netip.ParsePrefix(route.Dst)
		if address, addressErr := netip.ParseAddr(route.Dst); addressErr == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err == nil && prefix.Bits() >= minRouteBits {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes, nil
}
