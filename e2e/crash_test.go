// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/traffic"
)

// requireLocal ends the attempt where the processes of the pods are not on this machine.
func (s *site) requireLocal() {
	s.t.Helper()
	if !s.cluster.Local {
		s.t.Skipf("the processes of the cluster %q are not on this machine", s.cluster.Context)
	}
}

// crash kills the process of one proxy of a split whose command begins with a name, and which
// is not the first of its container: that one's end is the end of the pod's container.
func (s *site) crash(split, name string) {
	s.t.Helper()
	s.requireLocal()
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(ctx context.Context) (bool, error) {
		for _, pod := range s.pods(client.MatchingLabels{traffic.LabelProxy: split}) {
			for _, id := range containers(pod) {
				if pid := processOf(id, func(command string, first bool) bool { return !first && strings.HasPrefix(command, name) }); pid != 0 {
					s.t.Logf("kill %s of %s", name, pod.Name)
					return true, syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		return false, nil // an earlier crash may have left none for a moment
	})
	if err != nil {
		s.t.Fatalf("kill a process %s of a proxy of %s: %v", name, split, err)
	}
}

// pods of the site with labels.
func (s *site) pods(labels client.MatchingLabels) []corev1.Pod {
	s.t.Helper()
	pods := &corev1.PodList{}
	if err := s.api.List(s.t.Context(), pods, client.InNamespace(s.namespace), labels); err != nil {
		s.t.Fatal(err)
	}
	return pods.Items
}

// containers are the identifiers of a pod's containers.
func containers(pod corev1.Pod) (ids []string) {
	for _, status := range pod.Status.ContainerStatuses {
		if _, id, found := strings.Cut(status.ContainerID, "://"); found && id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// processOf finds a process of a container by its command, and by whether it is the first of
// the container; 0 when there is none. The name of its control group holds the container's
// identifier.
func processOf(container string, wanted func(command string, first bool) bool) int {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, process := range processes {
		group, groupErr := os.ReadFile(filepath.Join(process, "cgroup"))
		command, commandErr := os.ReadFile(filepath.Join(process, "cmdline"))
		status, statusErr := os.ReadFile(filepath.Join(process, "status"))
		if groupErr != nil || commandErr != nil || statusErr != nil || !bytes.Contains(group, []byte(container)) {
			continue // it has ended, or is another's
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && wanted(commandName(string(command)), first(string(status))) {
			return pid
		}
	}
	return 0
}

// commandName is the name of a program, or the title that nginx gives its processes.
func commandName(command string) string {
	if strings.HasPrefix(command, "nginx:") {
		return command
	}
	program, _, _ := strings.Cut(command, "\x00")
	return filepath.Base(program)
}

// first tells from /proc/PID/status whether a process is number 1 of its container.
func first(status string) bool {
	for line := range strings.Lines(status) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found {
			fields := strings.Fields(numbers)
			return fields[len(fields)-1] == "1"
		}
	}
	return true
}
