// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/e2e/diagnosis"
	"github.com/serin-dev/serin/e2e/images"
)

// imageNamespace is where Kubernetes keeps its images in containerd.
const imageNamespace = "k8s.io"

// startNode starts what runs pods. The image that every pod needs has to be
// there before the first of them.
func (l *local) startNode(ctx context.Context) error {
	runtime := l.node.ContainerRuntime()
	if err := l.ensure(ctx, runtime); err != nil {
		return err
	}
	store := l.store()
	err := l.await(ctx, "the container runtime", func(ctx context.Context) error {
		_, err := store.digests(ctx)
		return err
	}, runtime)
	if err != nil {
		return err
	}
	cluster := &Cluster{options: l.options, images: store}
	if err := images.Load(ctx, images.NewBuilder(l.checkout, l.options.Out), cluster, images.Pause); err != nil {
		return err
	}
	before := l.record.Processes[l.node.Kubelet().Name].Identity
	now := l.options.Clock.Now()
	if err := l.ensure(ctx, l.node.Kubelet()); err != nil {
		return err
	}
	if l.record.Processes[l.node.Kubelet().Name].Identity != before {
		l.kubeletStarted = now.Truncate(time.Second) // as exact as what the node says
	}
	return l.ensure(ctx, l.node.Proxy())
}

// nodeReady is an error until the node says that it is ready. What it said
// before its kubelet was started again does not count.
func (l *local) nodeReady(ctx context.Context) error {
	node, err := l.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pressure := diagnosis.Pressure(node); pressure != "" {
		return fmt.Errorf("the node takes no pods, it has %s; free some of it on this machine", pressure)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.LastHeartbeatTime.Time.Before(l.kubeletStarted) {
			return errors.New("the kubelet has not reported since it was started")
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("the node is not ready: %s: %s", condition.Reason, condition.Message)
	}
	return errors.New("the node does not say whether it is ready")
}

// store is the images of the node.
func (l *local) store() containerdStore {
	return containerdStore{socket: l.node.ContainerdSocket()}
}

// containerdStore is the images of a containerd on this machine.
type containerdStore struct{ socket string }

// digests reads the table that ctr prints: a line of titles, then one line per image that
// begins with its reference, its media type and its digest.
func (s containerdStore) digests(ctx context.Context) (map[string]string, error) {
	table, err := s.ctr(ctx, "images", "list")
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasPrefix(fields[2], "sha256:") {
			digests[fields[0]] = fields[2]
		}
	}
	return digests, nil
}

func (s containerdStore) load(ctx context.Context, archive images.Archive) error {
	_, err := s.ctr(ctx, "images", "import", archive.Path)
	return err
}

func (s containerdStore) ctr(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--address", s.socket, "--namespace", imageNamespace, "--connect-timeout", "2s"}, args...)
	output, err := exec.CommandContext(ctx, "ctr", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return string(output), nil
}
