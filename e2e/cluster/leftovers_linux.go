// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// removeContainerFiles removes what containers leave outside of the cluster's
// folder. The folder says which containers there were; their processes have ended.
func removeContainerFiles(dir string) error {
	ids, err := containerIDs(dir)
	errs := []error{err}
	for _, id := range ids {
		errs = append(errs,
			removeCgroups(id),
			removeMatches(filepath.Join("/var/lib/cni/results", "*-"+id+"-*")),
			removeSocket(filepath.Join(bundles(dir), id, "address")),
		)
	}
	return errors.Join(append(errs, removeLogLinks(dir))...)
}

// bundles is where containerd keeps what it knows of running containers.
func bundles(dir string) string {
	return filepath.Join(dir, "containerd", "state", "io.containerd.runtime.v2.task", imageNamespace)
}

// containerIDs lists the containers that containerd knows, or knew when it died.
func containerIDs(dir string) ([]string, error) {
	entries, err := os.ReadDir(bundles(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids, nil
}

// cgroups lists the control groups of a container, or, for "", those above all of
// them. There is one with the second version of control groups, and one per controller with the first.
func cgroups(id string) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		// The pattern is well formed, which is all that Glob could complain of.
		groups, _ := filepath.Glob(filepath.Join(pattern, imageNamespace, id))
		found = append(found, groups...)
	}
	return found
}

// removeCgroups removes the control groups of a container.
func removeCgroups(id string) error {
	var errs []error
	for _, group := range cgroups(id) {
		if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove the control group %s: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

// removeSocket removes the socket of a container's supervisor, which lies in a
// folder that all containerds of a machine share. The note names it.
func removeSocket(note string) error {
	address, err := os.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read where a socket is: %w", err)
	}
	path, isPath := strings.CutPrefix(strings.TrimSpace(string(address)), "unix://")
	if !isPath {
		return nil
	}
	return removeFile(path)
}

// removeLogLinks removes the symbolic links by which the kubelet offers the
// logs of containers in a folder of the machine.
func removeLogLinks(dir string) error {
	links, err := filepath.Glob("/var/log/containers/*.log")
	errs := []error{err}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir+"/") {
			errs = append(errs, removeFile(link))
		}
	}
	return errors.Join(errs...)
}

// restore gives kernel parameters the values back that they had before the first
// cluster, and removes what the programs of all clusters made outside of their folders.
func (m *machine) restore(ctx context.Context) error {
	var errs []error
	for name, value := range m.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o600); err != nil {
			errs = append(errs, fmt.Errorf("restore a kernel parameter: %w", err))
		}
	}
	for _, path := range m.Absent {
		switch path {
		case kubeletDir:
			errs = append(errs, removeMatches(filepath.Join(path, "device-plugins", "kubelet*")))
		case runtimeDir:
			errs = append(errs, removeDeadSockets(ctx, filepath.Join(path, "s")))
		}
		errs = append(errs, removeEmptyFolders(path))
	}
	return errors.Join(errs...)
}

// removeParentCgroups removes the control groups above those of containers, unless
// another containerd has some in them.
func removeParentCgroups() error {
	var errs []error
	for _, group := range cgroups("") {
		if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, fmt.Errorf("remove the control group %s: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

// removeDeadSockets removes the sockets that nobody listens on: those of
// supervisors that were killed and that containerd then forgot.
func removeDeadSockets(ctx context.Context, folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	errs := []error{err}
	var dialer net.Dialer
	for _, path := range paths {
		connection, err := dialer.DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			errs = append(errs, connection.Close())
		case errors.Is(err, unix.ECONNREFUSED):
			errs = append(errs, removeFile(path))
		}
	}
	return errors.Join(errs...)
}

// removeEmptyFolders removes a folder and what is in it as far as that is only
// folders: a file in it belongs to something else by now.
func removeEmptyFolders(path string) error {
	var folders []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for what the cluster's programs made: %w", err)
	}
	for _, folder := range slices.Backward(folders) {
		if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
			return fmt.Errorf("remove %s: %w", folder, err)
		}
	}
	return nil
}

func removeMatches(pattern string) error {
	paths, err := filepath.Glob(pattern)
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, removeFile(path))
	}
	return errors.Join(errs...)
}

func removeFile(path string) error {
	//nolint:gosec // the paths are those that the cluster's own programs wrote
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what the cluster's programs made: %w", err)
	}
	return nil
}

// removeRuntimeState removes what containerd knows of running containers, after
// a boot of the machine has ended them all. Images stay.
func removeRuntimeState(dir string) error {
	return errors.Join(
		removeContainerFiles(dir),
		os.RemoveAll(filepath.Join(dir, "containerd", "state")),
		os.RemoveAll(filepath.Join(dir, "containerd", "runc")),
		os.RemoveAll(filepath.Join(dir, "cni", "addresses")),
	)
}
