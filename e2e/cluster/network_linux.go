// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/e2e/cluster/process"
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

const (
	// nsenterPath starts a program in a namespace. It is part of util-linux.
	nsenterPath = "/usr/bin/nsenter"
	// nodeLink is the name of the link in the cluster's namespace.
	nodeLink = "eth0"
)

// netns is the path of the cluster's network namespace.
func netns(dir string) string { return filepath.Join(dir, "netns") }

// enter makes the program run in the cluster's network namespace, and in the
// machine's other namespaces: containers need the machine's mounts.
func enter(dir string, spec process.Spec) process.Spec {
	spec.Args = append([]string{"--net=" + netns(dir), "--", spec.Path}, spec.Args...)
	spec.Path = nsenterPath
	return spec
}

// runInside runs a program of the machine in the cluster's network namespace.
func (l *local) runInside(ctx context.Context, name string, args ...string) error {
	_, err := run(ctx, nsenterPath, append([]string{"--net=" + netns(l.options.Dir), "--", name}, args...)...)
	return err
}

// prepareNetwork makes the cluster's network namespace and its link to the
// machine, as far as they are not there.
func (l *local) prepareNetwork(ctx context.Context) error {
	if err := l.makeNamespace(ctx); err != nil {
		return err
	}
	if !linkExists(l.networks.link) {
		if err := l.addLink(ctx); err != nil {
			return err
		}
	}
	return errors.Join(l.configureInside(ctx), l.configureMachine(ctx))
}

// addLink makes the link. The networks were free when the cluster got its number;
// since then, and a boot, something else may have taken them.
func (l *local) addLink(ctx context.Context) error {
	taken, err := takenPrefixes(ctx)
	if err != nil {
		return err
	}
	if prefix, overlaps := l.networks.overlap(taken); overlaps {
		return &NotPossibleError{
			Reason: fmt.Sprintf("this machine uses %s, which overlaps the networks of the cluster", prefix),
			Remedy: "stop what uses it, or remove the cluster and start it again, with other networks",
		}
	}
	_, err = run(ctx, "ip", "link", "add", l.networks.link, "type", "veth", "peer", "name", nodeLink, "netns", netns(l.options.Dir))
	return err
}

// makeNamespace makes the namespace unless it is there. Without it, whatever still
// runs is in a namespace that no new program can enter, and the link leads there.
func (l *local) makeNamespace(ctx context.Context) error {
	path := netns(l.options.Dir)
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err == nil && stat.Type == unix.NSFS_MAGIC {
		return nil
	}
	err := errors.Join(
		stopPrograms(ctx, l.options.Dir, l.record), stopContainers(ctx, l.options.Dir),
		removeLink(ctx, l.networks.link), os.WriteFile(path, nil, 0o600))
	if err != nil {
		return err
	}
	_, err = run(ctx, "unshare", "--net="+path, "true")
	return err
}

// configureInside gives the node its address and forwards packets for pods. The
// kernel parameter belongs to the namespace: the machine's own stays as it is.
func (l *local) configureInside(ctx context.Context) error {
	for _, command := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "replace", l.networks.node.String(), "dev", nodeLink},
		{"ip", "link", "set", nodeLink, "up"},
		{"ip", "route", "replace", "default", "via", l.networks.machine.Addr().String()},
		{"sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
	} {
		if err := l.runInside(ctx, command[0], command[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// configureMachine lets the machine reach the node, pods and Services.
func (l *local) configureMachine(ctx context.Context) error {
	n := l.networks
	for _, args := range [][]string{
		{"address", "replace", n.machine.String(), "dev", n.link},
		{"link", "set", n.link, "up"},
		{"route", "replace", n.pods.String(), "via", n.node.Addr().String()},
		{"route", "replace", n.services.String(), "via", n.node.Addr().String()},
	} {
		if _, err := run(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// removeLink removes a cluster's link, if it is there, and with it the routes that use it. The
// kernel may remove it first, some time after the end of the namespace.
func removeLink(ctx context.Context, name string) error {
	if !linkExists(name) {
		return nil
	}
	if _, err := run(ctx, "ip", "link", "delete", name); err != nil && linkExists(name) {
		return err
	}
	return nil
}

func linkExists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}
