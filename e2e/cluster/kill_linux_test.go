// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/cluster/process"
)

// pretendBoot ends everything of the cluster that a boot of the machine would end.
func pretendBoot(t *testing.T, options cluster.Options) {
	t.Helper()
	kill(t, options)
	killMarked(t, options)
	killContainers(t, options)
	unmountAll(t, options)
	path := filepath.Join(options.Dir, "cluster.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(content, &record); err != nil {
		t.Fatal(err)
	}
	record["boot"] = "another"
	if content, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// killContainers kills what runs in containers, which have the cluster's folder in
// their mounts.
func killContainers(t *testing.T, options cluster.Options) {
	t.Helper()
	found, err := process.FindByMount(func(line string) bool {
		fields := strings.Fields(line)
		return len(fields) > 4 && fields[4] == "/" && strings.Contains(line, "upperdir="+options.Dir)
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("find the containers: %v, %v", found, err)
	}
	for _, identity := range found {
		if err := identity.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// unmountAll unmounts what is mounted in the cluster's folder, its network namespace among it.
func unmountAll(t *testing.T, options cluster.Options) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, options.Dir+"/") {
			if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				t.Fatalf("unmount %s: %v", point, err)
			}
		}
	}
}

// kill kills the named programs of the cluster, or all of them.
func kill(t *testing.T, options cluster.Options, names ...string) {
	t.Helper()
	for name, pid := range processes(t, options) {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		killNow(t, name, pid)
	}
}

// killNow returns when the process has ended: a large one is there for a while after
// SIGKILL, and would be taken for one that runs.
func killNow(t *testing.T, name string, pid int) {
	t.Helper()
	descriptor, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("watch %s: %v", name, err)
	}
	defer unix.Close(descriptor) //nolint:errcheck // only watched
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", name, err)
	}
	const limit = 10_000 // milliseconds
	watched := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(watched, limit)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || n == 0:
			t.Fatalf("%s has not ended after SIGKILL: %v", name, err)
		default:
			return
		}
	}
}

// killMarked kills whatever else the cluster started, the supervisors of containers among it.
func killMarked(t *testing.T, options cluster.Options) {
	t.Helper()
	found, err := process.FindByEnv("SERIN_CLUSTER_DIR="+options.Dir, "")
	if err != nil || len(found) == 0 {
		t.Fatalf("find what the cluster started: %v, %v", found, err)
	}
	for _, identity := range found {
		if err := identity.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}
