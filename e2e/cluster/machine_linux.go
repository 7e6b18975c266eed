// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/serin-dev/serin/e2e/tools"
)

// machinePath is the record of what the clusters of this machine share. It lies
// outside of their folders, and outlives a boot as they do.
const machinePath = "/var/lib/serin-clusters.json"

// outsidePaths are the paths outside of the cluster's folder that its programs
// write to and whose place cannot be chosen. Those that did not exist are removed
// with the last cluster.
var outsidePaths = []string{kubeletDir, "/var/log/containers", "/var/lib/cni", runtimeDir}

const (
	// kubeletDir is where the kubelet listens for plugins, wherever its own folder is.
	kubeletDir = "/var/lib/kubelet"
	// runtimeDir is where containers' supervisors listen, whichever containerd started them.
	runtimeDir = "/run/containerd"
)

// sysctls are the kernel parameters of the whole machine that the cluster's
// programs change. The kubelet would stop with an error if it might not. Those of the network
// belong to the cluster's namespace.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// machine is what the clusters of this machine share. Only the last of them
// restores what was there before the first.
type machine struct {
	// Clusters are the numbers of the clusters, by their folders. They stand for their networks.
	Clusters map[string]int `json:"clusters"`
	// Sysctls are the values of kernel parameters before the first cluster, by path under /proc/sys.
	Sysctls map[string]string `json:"sysctls"`
	// Absent are the paths that did not exist before the first cluster.
	Absent []string `json:"absent"`

	path string
}

// openMachine reads the record of the machine and keeps other commands from it
// until release is called. A record that cannot be read is an empty one. The lock
// file goes when no cluster needs it.
func openMachine(ctx context.Context, path string) (m *machine, release func(), err error) {
	unlock, err := tools.Lock(ctx, path+".lock", nil)
	if err != nil {
		return nil, nil, err
	}
	release = func() {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(path + ".lock") // the next command makes it anew
		}
		unlock()
	}
	m = &machine{path: path}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		release()
		return nil, nil, fmt.Errorf("read what the clusters of this machine share: %w", err)
	}
	if json.Unmarshal(content, m) != nil {
		*m = machine{path: path}
	}
	if m.Clusters == nil {
		m.Clusters = map[string]int{}
	}
	return m, release, nil
}

// write replaces the record, whole or not at all.
func (m *machine) write() error { return writeJSON(m.path, m) }

// joinMachine gives the cluster a number, and notes how the machine is before the
// first cluster changes it.
func (l *local) joinMachine(ctx context.Context) error {
	m, release, err := openMachine(ctx, machinePath)
	if err != nil {
		return err
	}
	defer release()
	if number, joined := m.Clusters[l.options.Dir]; joined {
		l.networks = makeNetworks(number)
		return nil
	}
	if _, err := os.Stat(filepath.Join(l.options.Dir, "pki")); err == nil {
		return fmt.Errorf("%s does not name the networks of the cluster in %s: remove the cluster and start it again", machinePath, l.options.Dir)
	}
	number, err := m.join(ctx, l.options.Dir)
	l.networks = makeNetworks(number)
	return err
}

// join adds the cluster in dir.
func (m *machine) join(ctx context.Context, dir string) (number int, err error) {
	if err := m.dropDeleted(ctx); err != nil {
		return 0, err
	}
	if m.Sysctls == nil { // a record without clusters is of one whose folder was deleted: nothing is restored yet
		if err := m.noteBefore(); err != nil {
			return 0, err
		}
	}
	taken, err := takenPrefixes(ctx)
	if err != nil {
		return 0, err
	}
	if number, err = m.freeNumber(taken); err != nil {
		return 0, err
	}
	m.Clusters[dir] = number
	return number, m.write()
}

// numberOf returns the number of the cluster in dir, if it has one.
func numberOf(ctx context.Context, dir string) (number int, joined bool, err error) {
	m, release, err := openMachine(ctx, machinePath)
	if err != nil {
		return 0, false, err
	}
	defer release()
	number, joined = m.Clusters[dir]
	return number, joined, nil
}

// leaveMachine gives the number of the cluster in dir back, and the machine its
// former state when no other cluster is left.
func leaveMachine(ctx context.Context, dir string) error {
	m, release, err := openMachine(ctx, machinePath)
	if err != nil {
		return err
	}
	defer release()
	last, err := m.leave(ctx, dir)
	if err != nil || !last {
		return err
	}
	if err := errors.Join(removeParentCgroups(), m.restore(ctx)); err != nil {
		return err
	}
	return removeFile(m.path)
}

// leave removes the cluster in dir from the record. It tells whether it was the last.
func (m *machine) leave(ctx context.Context, dir string) (last bool, err error) {
	delete(m.Clusters, dir)
	if err := m.dropDeleted(ctx); err != nil {
		return false, err
	}
	if len(m.Clusters) == 0 {
		return true, nil // the record stays until the machine is restored
	}
	return false, m.write()
}

// dropDeleted forgets the clusters whose folder somebody deleted and of which
// nothing runs.
func (m *machine) dropDeleted(ctx context.Context) error {
	for dir, number := range m.Clusters {
		there, err := anyTrace(dir)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		if err := removeLink(ctx, makeNetworks(number).link); err != nil {
			return err
		}
		delete(m.Clusters, dir)
	}
	return nil
}

// noteBefore notes what the first cluster is going to change.
func (m *machine) noteBefore() error {
	m.Sysctls, m.Absent = map[string]string{}, nil
	for _, name := range sysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // this kernel does not have it, so nothing changes it
		}
		if err != nil {
			return fmt.Errorf("read a kernel parameter: %w", err)
		}
		m.Sysctls[name] = strings.TrimSpace(string(value))
	}
	for _, path := range outsidePaths {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			m.Absent = append(m.Absent, path)
		}
	}
	return nil
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
