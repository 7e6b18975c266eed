// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

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
