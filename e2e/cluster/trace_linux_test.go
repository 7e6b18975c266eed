// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

// machineRecord lists the clusters of this machine.
const machineRecord = "/var/lib/serin-clusters.json"

// trace is what a cluster could leave on a machine, by kind.
type trace map[string][]string

// takeTrace looks at the machine for what the clusters in dirs leave there. What
// another cluster does meanwhile does not count. Where a kind cannot be looked at, as for
// want of a program, it is empty: both times.
func takeTrace(t *testing.T, dirs ...string) trace {
	t.Helper()
	found := trace{}
	others, otherLinks := otherClusters(t, dirs)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range interfaces {
		addresses, _ := link.Addrs()
		for _, address := range addresses {
			if !slices.Contains(otherLinks, link.Name) {
				found["link"] = append(found["link"], link.Name+" "+address.String())
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		point := strings.Fields(line)[4]
		if !slices.ContainsFunc(others, func(dir string) bool { return strings.HasPrefix(point, dir+"/") }) {
			found["mount"] = append(found["mount"], point)
		}
	}
	rules, _ := exec.Command("nft", "list", "tables").Output()
	found["nftables"] = strings.Split(string(rules), "\n")
	routes, _ := exec.Command("ip", "route").Output()
	found["route"] = slices.DeleteFunc(strings.Split(string(routes), "\n"), func(line string) bool {
		return slices.ContainsFunc(strings.Fields(line), func(word string) bool { return slices.Contains(otherLinks, word) })
	})
	if len(others) == 0 { // else the last of them restores what they share
		takeSharedTrace(found)
	}
	for _, dir := range dirs {
		running, err := process.FindByEnv("SERIN_CLUSTER_DIR="+dir, "")
		if err != nil {
			t.Fatal(err)
		}
		found["process"] = append(found["process"], fmt.Sprint(running))
	}
	for kind := range found {
		slices.Sort(found[kind])
	}
	return found
}

// takeSharedTrace looks at what all clusters of a machine share.
func takeSharedTrace(found trace) {
	found["control group"], found["path"], found["kernel"] = nil, nil, nil
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io*", "/sys/fs/cgroup/*/k8s.io*"} {
		groups, _ := filepath.Glob(pattern)
		found["control group"] = append(found["control group"], groups...)
	}
	for _, path := range []string{
		"/var/lib/kubelet", "/var/log/containers", "/var/lib/cni", "/run/containerd", "/usr/sbin/policy-rc.d", machineRecord, machineRecord + ".lock",
	} {
		if _, err := os.Stat(path); err == nil {
			found["path"] = append(found["path"], path)
		}
	}
	for _, name := range []string{"net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		value, _ := os.ReadFile("/proc/sys/" + name)
		found["kernel"] = append(found["kernel"], name+"="+strings.TrimSpace(string(value)))
	}
}

// otherClusters lists the folders and the links of this machine's clusters that are
// not among dirs.
func otherClusters(t *testing.T, dirs []string) (folders, links []string) {
	t.Helper()
	content, err := os.ReadFile(machineRecord)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // without root, tests are skipped
		return nil, nil
	}
	var record struct {
		Clusters map[string]int `json:"clusters"`
	}
	if err == nil {
		err = json.Unmarshal(content, &record)
	}
	if err != nil {
		t.Fatal(err)
	}
	for dir, number := range record.Clusters {
		if !slices.Contains(dirs, dir) {
			folders, links = append(folders, dir), append(links, fmt.Sprintf("serin%d", number))
		}
	}
	return folders, links
}

// requireTrace fails the test unless the machine is as it was. The kernel takes
// the links of a network namespace away some time after the namespace.
func requireTrace(t *testing.T, before trace, dirs ...string) {
	t.Helper()
	var diff string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		after := takeTrace(t, dirs...)
		// What other clusters share is compared when there were none, then and now.
		same := cmpopts.IgnoreMapEntries(func(kind string, _ []string) bool {
			_, then := before[kind]
			_, now := after[kind]
			return !then || !now
		})
		diff = cmp.Diff(before, after, same)
		return diff == "", nil
	})
	if err != nil {
		t.Errorf("what the cluster left behind (-before +after):\n%s", diff)
	}
}
