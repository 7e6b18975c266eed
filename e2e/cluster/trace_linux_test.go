// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
)

// trace is what a cluster could leave on a machine, by kind.
type trace map[string][]string

// takeTrace looks at the machine. Where a kind cannot be looked at, as for want
// of a program, it is empty: both times.
func takeTrace(t *testing.T) trace {
	t.Helper()
	found := trace{}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range interfaces {
		addresses, _ := link.Addrs()
		for _, address := range addresses {
			found["link"] = append(found["link"], link.Name+" "+address.String())
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		found["mount"] = append(found["mount"], strings.Fields(line)[4])
	}
	rules, _ := exec.Command("nft", "list", "tables").Output()
	found["nftables"] = strings.Split(string(rules), "\n")
	routes, _ := exec.Command("ip", "route").Output()
	found["route"] = strings.Split(string(routes), "\n")
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/k8s.io*")
	found["control group"] = groups
	for _, path := range []string{"/var/lib/kubelet", "/var/log/containers", "/var/lib/cni", "/run/containerd", "/usr/sbin/policy-rc.d"} {
		if _, err := os.Stat(path); err == nil {
			found["path"] = append(found["path"], path)
		}
	}
	for _, name := range []string{"net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"} {
		value, _ := os.ReadFile("/proc/sys/" + name)
		found["kernel"] = append(found["kernel"], name+"="+strings.TrimSpace(string(value)))
	}
	found["process"] = clusterProcesses()
	for kind := range found {
		slices.Sort(found[kind])
	}
	return found
}

// clusterProcesses lists the programs of processes that a cluster started.
func clusterProcesses() []string {
	var names []string
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(environment), "SERIN_CLUSTER_DIR=") {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}

// requireTrace fails the test unless the machine is as it was. The kernel takes
// the links of a network namespace away some time after the namespace.
func requireTrace(t *testing.T, before trace) {
	t.Helper()
	var diff string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		diff = cmp.Diff(before, takeTrace(t))
		return diff == "", nil
	})
	if err != nil {
		t.Errorf("what the cluster left behind (-before +after):\n%s", diff)
	}
}
