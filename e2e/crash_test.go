// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/demo/story"
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
	err := wait.PollUntilContextTimeout(s.t.Context(), look, stateLimit, true, func(context.Context) (bool, error) {
		for _, pod := range s.pods(client.MatchingLabels{traffic.LabelProxy: split}) {
			for _, id := range containers(pod) {
				if found := processOf(id, func(p process) bool { return !p.first && strings.HasPrefix(p.command, name) }); found.pid != 0 {
					s.t.Logf("kill %s of %s", name, pod.Name)
					return true, syscall.Kill(found.pid, syscall.SIGKILL)
				}
			}
		}
		return false, nil // an earlier crash may have left none for a moment
	})
	if err != nil {
		s.t.Fatalf("kill a process %s of a proxy of %s: %v", name, split, err)
	}
}

// killing has one scenario at a time kill managers.
var killing sync.Mutex

// killLeader kills the manager that leads, when another one is there to take over. The kubelet
// waits the longer before it starts a container again the more often that has crashed, so that
// managers that crashed before get new pods first.
func (s *site) killLeader() {
	s.t.Helper()
	killing.Lock()
	defer killing.Unlock()
	ending := func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }
	all := slices.DeleteFunc(s.podsIn(stage.SystemNamespace, managerLabels), ending)
	for _, pod := range all {
		if crashed(pod) {
			if err := s.api.Delete(s.t.Context(), &pod); client.IgnoreNotFound(err) != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.poll("managers that have not crashed", func() bool {
		now := s.podsIn(stage.SystemNamespace, managerLabels)
		return len(now) >= len(all) && !slices.ContainsFunc(now, func(pod corev1.Pod) bool {
			return ending(pod) || crashed(pod) || !podutils.IsPodReady(&pod)
		})
	})
	if err := s.stage.Kill(s.t.Context(), story.TargetManager); err != nil {
		s.t.Fatal(err)
	}
	s.t.Log("killed the manager that leads")
}

// crashed tells whether a container of a pod was started again.
func crashed(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
}

// pods of the site with labels.
func (s *site) pods(labels client.MatchingLabels) []corev1.Pod {
	s.t.Helper()
	return s.podsIn(s.namespace, labels)
}

// managerLabels select the managers among the pods of Serin itself.
var managerLabels = client.MatchingLabels{"app.kubernetes.io/component": "manager"}

// podsIn are those of a namespace with labels, nil for all.
func (s *site) podsIn(namespace string, labels client.MatchingLabels) []corev1.Pod {
	s.t.Helper()
	pods := &corev1.PodList{}
	if err := s.api.List(s.t.Context(), pods, client.InNamespace(namespace), labels); err != nil {
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

// process is one that runs in a pod of this machine.
type process struct {
	pid int
	// command is the name of its program, or the title that nginx gives its processes.
	command string
	// first tells that it is the first of its container, whose end is that of the container.
	first bool
}

// processOf finds a process of a container, one with the number 0 when there is none. The name of
// its control group holds the container's identifier, which may be empty for any.
func processOf(container string, wanted func(process) bool) process {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return process{}
	}
	for _, folder := range folders {
		group, groupErr := os.ReadFile(filepath.Join(folder, "cgroup"))
		command, commandErr := os.ReadFile(filepath.Join(folder, "cmdline"))
		status, statusErr := os.ReadFile(filepath.Join(folder, "status"))
		if groupErr != nil || commandErr != nil || statusErr != nil || !bytes.Contains(group, []byte(container)) {
			continue // it has ended, or is another's
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if p := (process{pid: pid, command: commandName(string(command)), first: first(string(status))}); err == nil && wanted(p) {
			return p
		}
	}
	return process{}
}

// containerProcess is the first process of a container, and the network namespace of its pod,
// which stays when the container is started again.
type containerProcess struct {
	process
	network string
}

// containerProcesses finds those of the pods that have labels.
func (s *site) containerProcesses(namespace string, labels client.MatchingLabels) (list []containerProcess) {
	s.t.Helper()
	for _, pod := range s.podsIn(namespace, labels) {
		for _, id := range containers(pod) {
			found := processOf(id, func(p process) bool { return p.first })
			list = append(list, containerProcess{process: found, network: networkOf(found.pid)})
		}
	}
	if len(list) == 0 || slices.ContainsFunc(list, func(p containerProcess) bool { return !p.first || p.network == "" }) {
		s.t.Fatalf("the processes of the pods with %v are not found: %+v", labels, list)
	}
	return list
}

// restart kills containers by their first processes, and returns when kubelets have started
// others in their place.
func (s *site) restart(old ...containerProcess) {
	s.t.Helper()
	for _, o := range old {
		s.t.Log(time.Now().UTC().Format(timeOfDay), "kill the container of", o.command)
		if err := syscall.Kill(o.pid, syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, o := range old {
		s.poll("another container of "+o.command, func() bool {
			return processOf("", func(p process) bool {
				return p.first && p.command == o.command && p.pid != o.pid && networkOf(p.pid) == o.network
			}).pid != 0
		})
	}
	s.t.Log(time.Now().UTC().Format(timeOfDay), "all are there again")
}

// networkOf tells the network namespace of a process, "" when it has ended.
func networkOf(pid int) string {
	network, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	return network
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
