// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

// outsidePaths are the paths outside of the cluster's folder that its programs
// write to and whose place cannot be chosen. Those that did not exist are removed with the cluster.
var outsidePaths = []string{kubeletDir, "/var/log/containers", "/var/lib/cni", runtimeDir}

const (
	// kubeletDir is where the kubelet listens for plugins, wherever its own folder is.
	kubeletDir = "/var/lib/kubelet"
	// runtimeDir is where containers' supervisors listen, whichever containerd started them.
	runtimeDir = "/run/containerd"
)

// sysctls are the kernel parameters that the cluster's programs change. The
// kubelet would stop with an error if it might not.
var sysctls = []string{
	"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet",
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// prepareMachine notes how the machine is, then gives the node its address.
func (l *local) prepareMachine(ctx context.Context) error {
	if l.record.Sysctls == nil {
		if err := errors.Join(checkOtherClusters(l.options.Dir), checkNetworks()); err != nil {
			return err
		}
		if err := l.noteMachine(); err != nil {
			return err
		}
	}
	if err := errors.Join(addNodeAddress(ctx), addServiceRoute(ctx)); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
}

// noteMachine writes down what the cluster is going to change.
func (l *local) noteMachine() error {
	l.record.Sysctls = map[string]string{}
	for _, name := range sysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // this kernel does not have it, so nothing changes it
		}
		if err != nil {
			return fmt.Errorf("read a kernel parameter: %w", err)
		}
		l.record.Sysctls[name] = strings.TrimSpace(string(value))
	}
	for _, path := range outsidePaths {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			l.record.Absent = append(l.record.Absent, path)
		}
	}
	return l.record.write()
}

// checkOtherClusters refuses a machine on which a cluster of another folder
// runs: both would use the same networks.
func checkOtherClusters(dir string) error {
	running, err := process.Environments(markerVariable)
	if err != nil {
		return err
	}
	for _, other := range running {
		if other != dir {
			return &NotPossibleError{
				Reason: "a cluster already runs on this machine, from the folder " + other,
				Remedy: "use that one, or remove it with the command down and --dir " + other,
			}
		}
	}
	return nil
}

// checkNetworks refuses a machine that is itself in one of the cluster's networks.
func checkNetworks() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("list the addresses of the machine: %w", err)
	}
	var present []netip.Prefix
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			present = append(present, prefix)
		}
	}
	if taken, network := overlap(present); taken.IsValid() {
		return &NotPossibleError{
			Reason: fmt.Sprintf("this machine has the address %s, which is in the network %s of the cluster", taken, network),
			Remedy: "stop what it belongs to (another local cluster?), or name an existing cluster with " + KubeconfigVariable,
		}
	}
	return nil
}

// overlap returns the first network that overlaps one of the cluster's, and that
// one. The address of the node itself may be left from an interrupted start.
func overlap(present []netip.Prefix) (taken, network netip.Prefix) {
	own := netip.PrefixFrom(netip.MustParseAddr(nodeAddress), 32)
	for _, cidr := range []string{podCIDR, serviceCIDR, own.String()} {
		network := netip.MustParsePrefix(cidr)
		i := slices.IndexFunc(present, func(p netip.Prefix) bool { return p != own && p.Overlaps(network) })
		if i >= 0 {
			return present[i], network
		}
	}
	return netip.Prefix{}, netip.Prefix{}
}

// addNodeAddress puts the node's address on the loopback interface: it is the
// same whatever networks the machine has, and only this machine and its pods reach it.
// Its scope is global since the kernel masquerades behind no other; a machine that is
// offline has no second one.
func addNodeAddress(ctx context.Context) error {
	_, err := run(ctx, "ip", "address", "replace", nodeAddress+"/32", "dev", "lo", "scope", "global")
	return err
}

// addServiceRoute leads packets to Services out by the loopback interface; on
// their way kube-proxy's rules give them the address of a pod. Without it a machine that has no
// default route, being offline, would not send them at all.
func addServiceRoute(ctx context.Context) error {
	_, err := run(ctx, "ip", "route", "replace", serviceCIDR, "dev", "lo", "src", nodeAddress)
	return err
}

// run runs a program of the machine and returns what it prints.
func run(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return string(output), nil
}
