// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/e2e/demo/story"
)

const (
	// managerSelector selects the pods of the manager in the system's namespace.
	managerSelector = "app.kubernetes.io/name=serin"
	// managerLease is held by the manager that leads, as POD_ID.
	managerLease = "manager.serin.dev"
	// leadLimit bounds how long none may lead: a lease of one that was killed has to run out first.
	leadLimit = time.Minute
)

// errNoLeader is the error while no manager leads.
var errNoLeader = errors.New("no manager leads")

// killer ends parts of Serin without a warning.
type killer struct {
	core kubernetes.Interface
	// proc is the kernel's list of processes of this machine.
	proc fs.FS
	// kill sends SIGKILL.
	kill func(pid int) error
}

func newKiller(core kubernetes.Interface) killer {
	return killer{core: core, proc: os.DirFS("/proc"), kill: func(pid int) error {
		return syscall.Kill(pid, syscall.SIGKILL)
	}}
}

// Kill implements story.Stage. Where the pod runs on this machine, its process
// gets SIGKILL and its container restarts; elsewhere the pod is deleted without
// grace, which is as sudden. It waits until a manager leads, if that is the target.
func (s *Stage) Kill(ctx context.Context, target story.Target) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, leadLimit, true, func(ctx context.Context) (bool, error) {
		last = s.killer.killTarget(ctx, target)
		return !errors.Is(last, errNoLeader), nil
	})
	return cmp.Or(last, err)
}

func (k killer) killTarget(ctx context.Context, target story.Target) error {
	namespace, selector := Namespace, proxyLabel
	if target == story.TargetManager {
		namespace, selector = SystemNamespace, managerSelector
	}
	pods, err := k.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("find the %s: %w", target, err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("there is no pod %s in namespace %s to kill", selector, namespace)
	}
	// One of them: the others take over. Of the managers it is the one that leads.
	victim := &pods.Items[0]
	if target == story.TargetManager {
		if victim, err = k.leader(ctx, pods.Items); err != nil {
			return err
		}
	}
	return k.killPod(ctx, victim)
}

// leader is the manager's pod that leads, or errNoLeader.
func (k killer) leader(ctx context.Context, pods []corev1.Pod) (*corev1.Pod, error) {
	lease, err := k.core.CoordinationV1().Leases(SystemNamespace).Get(ctx, managerLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errNoLeader
	}
	if err != nil {
		return nil, fmt.Errorf("find the manager that leads: %w", err)
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name && leads(&pod, lease) })
	if i < 0 {
		return nil, errNoLeader
	}
	return &pods[i], nil
}

// leads tells whether the process that runs in the pod that holds a lease has acquired it. After a
// crash the lease is that of the process before, which leads no more.
func leads(pod *corev1.Pod, lease *coordinationv1.Lease) bool {
	return lease.Spec.AcquireTime != nil && slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil && !c.State.Running.StartedAt.After(lease.Spec.AcquireTime.Time)
	})
}

func (k killer) killPod(ctx context.Context, pod *corev1.Pod) error {
	for _, status := range pod.Status.ContainerStatuses {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		if pid := initProcess(k.proc, id); pid != 0 {
			if err := k.kill(pid); err != nil {
				return fmt.Errorf("kill process %d of pod %s: %w", pid, pod.Name, err)
			}
			return nil
		}
	}
	err := k.core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// initProcess finds the first process of a container, 0 when it is not on this
// machine. The name of its control group holds the container's identifier.
func initProcess(proc fs.FS, containerID string) int {
	if containerID == "" {
		return 0
	}
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		group, err := fs.ReadFile(proc, entry.Name()+"/cgroup")
		if err != nil || !strings.Contains(string(group), containerID) {
			continue // the process has ended, or is another's
		}
		if status, err := fs.ReadFile(proc, entry.Name()+"/status"); err == nil && isInit(string(status)) {
			return pid
		}
	}
	return 0
}

// isInit tells from /proc/PID/status whether a process is number 1 in a process
// namespace of its own.
func isInit(status string) bool {
	for line := range strings.Lines(status) {
		if numbers, isList := strings.CutPrefix(line, "NSpid:"); isList {
			fields := strings.Fields(numbers)
			return len(fields) > 1 && fields[len(fields)-1] == "1"
		}
	}
	return false
}
