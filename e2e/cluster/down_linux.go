// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/e2e/cluster/component"
	"github.com/serin-dev/serin/e2e/cluster/process"
)

// downLocal undoes everything, each part as far as it goes: what failed in one
// does not keep the others from being undone, and the record stays until all of it is.
func downLocal(ctx context.Context, options Options) error {
	if err := possible(); err != nil {
		return err
	}
	if _, err := os.Stat(options.Dir); errors.Is(err, fs.ErrNotExist) {
		options.say("there is no local cluster")
		return nil
	}
	release, err := lockDir(ctx, options)
	if err != nil {
		return err
	}
	defer release()
	record, err := readRecord(options.Dir)
	if err != nil {
		return err
	}
	options.say("removing the local cluster")
	err = errors.Join(
		stopPrograms(ctx, options.Dir, record),
		stopContainers(ctx, options.Dir),
		removeMounts(options.Dir),
		removeNetwork(ctx),
		removeCgroups(options.Dir),
		removeSockets(options.Dir),
		restoreMachine(record),
		allowServiceStarts(),
	)
	if err != nil {
		return fmt.Errorf("the cluster could not be removed completely, try again: %w", err)
	}
	if err := os.RemoveAll(options.Dir); err != nil {
		return fmt.Errorf("remove the folder of the cluster: %w", err)
	}
	return os.Remove(options.Dir + ".lock")
}

// stopPrograms stops what is on record: first what would start pods again, etcd last.
func stopPrograms(ctx context.Context, dir string, record *record) error {
	var errs []error
	for _, name := range slices.Backward(programNames) {
		if err := record.Processes[name].Stop(ctx, stopGrace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, killAll(ctx, func() ([]process.Identity, error) {
		return process.FindByEnv(marker(dir))
	}))...)
}

// stopContainers kills what runs in containers: their root file systems are
// mounts from the cluster's folder.
func stopContainers(ctx context.Context, dir string) error {
	return killAll(ctx, func() ([]process.Identity, error) {
		return process.FindByMount(func(line string) bool { return isContainerRoot(line, dir) })
	})
}

// isContainerRoot tells whether a line of a mount table is the root of a container
// of the cluster in dir. Fields: number, parent, device, root, mount point, …
func isContainerRoot(line, dir string) bool {
	fields := strings.Fields(line)
	return len(fields) > 4 && fields[4] == "/" && strings.Contains(line, "upperdir="+filepath.Join(dir, "containerd")+"/")
}

// killAll kills until nothing is found: a process may have started another meanwhile.
func killAll(ctx context.Context, find func() ([]process.Identity, error)) error {
	for {
		found, err := find()
		if err != nil || len(found) == 0 {
			return err
		}
		for _, identity := range found {
			if err := identity.Stop(ctx, 0); err != nil {
				return err
			}
		}
	}
}

// removeMounts takes away every mount under the folder, the last one first. It
// goes on until there is none, since mounts can lie on top of each other.
func removeMounts(dir string) error {
	for {
		points, err := mountPoints(dir)
		if err != nil || len(points) == 0 {
			return err
		}
		for _, point := range slices.Backward(points) {
			if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("unmount %s: %w", point, err)
			}
		}
	}
}

// mountPoints lists the mount points under the folder in the order they were made.
func mountPoints(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(unescape(fields[4]), dir+"/") {
			points = append(points, unescape(fields[4]))
		}
	}
	return points, nil
}

// unescape reads a path of the table of mounts, where blanks are written in octal.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// removeNetwork takes away the rules of kube-proxy and the node's address. The
// links of pods went with their namespaces.
func removeNetwork(ctx context.Context) error {
	var errs []error
	for _, family := range []string{"ip", "ip6"} {
		if _, err := run(ctx, "nft", "list", "table", family, "kube-proxy"); err != nil {
			continue // there is no such table, or no nft that could have made one
		}
		_, err := run(ctx, "nft", "delete", "table", family, "kube-proxy")
		errs = append(errs, err)
	}
	addresses, err := run(ctx, "ip", "-oneline", "address", "show", "dev", "lo", "to", nodeAddress+"/32")
	if err == nil && addresses != "" {
		_, err = run(ctx, "ip", "address", "delete", nodeAddress+"/32", "dev", "lo")
	}
	return errors.Join(append(errs, err)...)
}

// removeCgroups removes the control groups of containers. They are empty by now.
func removeCgroups(dir string) error {
	containers, err := containerIDs(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range containers {
		for _, pattern := range []string{"/sys/fs/cgroup/%s", "/sys/fs/cgroup/*/%s", "/sys/fs/cgroup/%s", "/sys/fs/cgroup/*/k8s.io/%s"} {
			groups, err := filepath.Glob(fmt.Sprintf(pattern, id))
			errs = append(errs, err)
			for _, group := range groups {
				if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.ENOENT) {
					errs = append(errs, fmt.Errorf("remove the control group %s: %w", group, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// bundles is where containerd keeps what it knows of running containers.
func bundles(dir string) string {
	return filepath.Join(dir, "containerd", "state", "io.containerd.runtime.v2.task", imageNamespace)
}

// containerIDs lists the containers that containerd knows, or knew when it died.
func containerIDs(dir string) ([]string, error) {
	entries, err := os.ReadDir(bundles(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids, nil
}

// removeSockets removes the sockets of containers' supervisors, which lie in a
// folder that all containerds of a machine share. Each container has a file that names its own.
func removeSockets(dir string) error {
	notes, err := filepath.Glob(filepath.Join(bundles(dir), "*", "address"))
	if err != nil {
		return err
	}
	var errs []error
	for _, note := range notes {
		address, err := os.ReadFile(note)
		errs = append(errs, err)
		path, isPath := strings.CutPrefix(strings.TrimSpace(string(address)), "unix://")
		if !isPath {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a socket: %w", err))
		}
	}
	return errors.Join(errs...)
}

// restoreMachine gives kernel parameters their former values back and removes
// the folders that the programs made outside of the cluster's own.
func restoreMachine(record *record) error {
	var errs []error
	for name, value := range record.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restore a kernel parameter: %w", err))
		}
	}
	for _, path := range record.Absent {
		if err := os.RemoveAll(path); err != nil {
			errs = append(errs, fmt.Errorf("remove what the cluster's programs made: %w", err))
		}
	}
	leftovers, err := filepath.Glob(filepath.Join("/var/lib/cni/results", component.NetworkName+"-*"))
	errs = append(errs, err)
	for _, path := range leftovers {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// removeRuntimeState removes what containerd knows of running containers, after
// a boot of the machine has ended them all. Images stay.
func removeRuntimeState(dir string) error {
	return errors.Join(
		os.RemoveAll(filepath.Join(dir, "containerd", "state")),
		os.RemoveAll(filepath.Join(dir, "containerd", "runc")),
		os.RemoveAll(filepath.Join(dir, "cni", "addresses")),
	)
}
