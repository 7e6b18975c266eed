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

	"github.com/serin-dev/serin/e2e/cluster/process"
)

// downLocal undoes everything, each part as far as it goes: what failed in one
// does not keep the others from being undone, and the record stays until all of it is.
func downLocal(ctx context.Context, options Options) error {
	if err := possible(); err != nil {
		return err
	}
	release, err := lockDir(ctx, options)
	if err != nil {
		return err
	}
	defer release()
	there, err := anyTrace(options.Dir)
	if err != nil {
		return err
	}
	number, joined, err := numberOf(ctx, options.Dir)
	if err != nil {
		return err
	}
	if !there && !joined {
		options.say("there is no local cluster")
		return nil
	}
	options.say("removing the local cluster")
	link := ""
	if joined {
		link = makeNetworks(number).link
	}
	if err := removeRunning(ctx, options.Dir, link); err != nil {
		return fmt.Errorf("the cluster could not be removed completely, try again: %w", err)
	}
	if err := os.RemoveAll(options.Dir); err != nil {
		return fmt.Errorf("remove the folder of the cluster: %w", err)
	}
	if err := leaveMachine(ctx, options.Dir); err != nil {
		return err
	}
	return os.Remove(options.Dir + ".lock")
}

// removeRunning removes all of the cluster that is not a file in its folder.
func removeRunning(ctx context.Context, dir, link string) error {
	record, err := readRecord(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		stopPrograms(ctx, dir, record),
		stopContainers(ctx, dir),
		removeLink(ctx, link),
		removeMounts(dir),
		removeContainerFiles(dir),
		allowServiceStarts(),
	)
}

// anyTrace tells whether there is anything to remove. Programs may run whose
// folder a person has deleted.
func anyTrace(dir string) (bool, error) {
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	running, err := process.FindByEnv(marker(dir), "")
	return len(running) > 0, err
}

// stopPrograms kills what is on record: first what would start pods again, etcd
// last. Nothing of what they would do at their end is needed.
func stopPrograms(ctx context.Context, dir string, record *record) error {
	var errs []error
	for _, name := range slices.Backward(programNames) {
		if err := record.Processes[name].Stop(ctx, 0); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, killAll(ctx, func() ([]process.Identity, error) {
		return process.FindByEnv(marker(dir), "")
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
// of the cluster in dir. The fifth of its fields is the mount point.
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
