// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

// readyTimeout bounds the start of one program, on a machine that is busy.
const readyTimeout = 2 * time.Minute

// startServers starts etcd and the API server. The API server waits for etcd by itself.
func (c *ControlPlane) startServers(ctx context.Context) error {
	for _, spec := range []process.Spec{c.plane.Etcd(), c.plane.APIServer()} {
		if err := c.startChild(spec); err != nil {
			return err
		}
	}
	return c.waitReady(ctx)
}

// startControllerManager returns when its controllers act: each namespace has
// its default service account, without which no pod can be made.
func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	if err := c.startChild(c.plane.ControllerManager()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	return c.wait(ctx, "the controllers", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// waitReady returns when the API server says that it is ready and the default
// namespace exists, which it makes a moment later.
func (c *ControlPlane) waitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	return c.wait(ctx, "the API server", func(ctx context.Context) error {
		if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return err
		}
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return errors.New("the default namespace is not there yet")
		}
		return err
	})
}

// wait asks until probe succeeds. It gives up at once when a program has ended.
func (c *ControlPlane) wait(ctx context.Context, what string, probe func(context.Context) error) error {
	last := "none"
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.ended(); err != nil {
			return false, err
		}
		err := probe(ctx)
		if err != nil {
			last = err.Error()
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s (last answer: %s): %w", what, last, err)
	}
	return nil
}

// ended is an error when one of the programs has ended.
func (c *ControlPlane) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.order {
		child := c.children[name]
		select {
		case <-child.Exited():
			return child.Err()
		default:
		}
	}
	return nil
}

// startChild starts a program, in the place of one of the same name that has ended.
func (c *ControlPlane) startChild(spec process.Spec) error {
	// Time is scarcer than memory: tests keep little in it, for minutes.
	spec.Env = append(spec.Env, "GOGC=200")
	child, err := process.StartChild(spec)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, again := c.children[spec.Name]; !again {
		c.order = append(c.order, spec.Name)
	}
	c.children[spec.Name] = child
	return nil
}
