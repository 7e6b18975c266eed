// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

const (
	// stopGrace is how long a program gets to end by itself.
	stopGrace = 10 * time.Second
	// pollPeriod is how often readiness is asked for.
	pollPeriod = 100 * time.Millisecond

	// systemPath is where the programs of the machine are, whatever the caller's PATH.
	systemPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// markerVariable names the folder of the cluster in the environment of each of
// its processes, and of what they start: it finds those that no record knows.
const markerVariable = "SERIN_CLUSTER_DIR"

func marker(dir string) string { return markerVariable + "=" + dir }

// ensure makes sure that the program runs as specified: what runs in another
// way is stopped first.
func (l *local) ensure(ctx context.Context, spec process.Spec) error {
	spec = enter(l.options.Dir, spec)
	spec.Env = []string{marker(l.options.Dir), systemPath, "HOME=/root"}
	fingerprint, err := spec.Fingerprint()
	if err != nil {
		return err
	}
	known, ok := l.record.Processes[spec.Name]
	if ok && known.Alive() && known.Fingerprint == fingerprint {
		return nil
	}
	if err := l.stopFormer(ctx, spec.Name, known.Identity); err != nil {
		return fmt.Errorf("stop the former %s: %w", spec.Name, err)
	}
	l.started = true
	l.options.say("starting %s", spec.Name)
	identity, err := process.Start(spec)
	if err != nil {
		return err
	}
	l.record.Processes[spec.Name] = startedProcess{Identity: identity, Fingerprint: fingerprint}
	return l.record.write()
}

// stopFormer stops the process on record, and any that a command which was
// killed started without getting to write it down.
func (l *local) stopFormer(ctx context.Context, name string, known process.Identity) error {
	if err := known.Stop(ctx, stopGrace); err != nil {
		return err
	}
	strays, err := process.FindByEnv(marker(l.options.Dir), name)
	for _, stray := range strays {
		err = errors.Join(err, stray.Stop(ctx, stopGrace))
	}
	return err
}

// await asks until probe succeeds. It gives up at once when one of the programs
// has ended.
func (l *local) await(ctx context.Context, what string, probe func(context.Context) error, specs ...process.Spec) error {
	last := "none"
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, readyTimeout, true, func(ctx context.Context) (bool, error) {
		for _, spec := range specs {
			if !l.record.Processes[spec.Name].Alive() {
				return false, fmt.Errorf("%s ended; the end of its log %s:\n%s", spec.Name, spec.Log, spec.LogTail())
			}
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

// startControlPlane starts etcd and what works on the API, and returns when the API answers.
func (l *local) startControlPlane(ctx context.Context) error {
	specs := []process.Spec{l.node.Etcd(), l.node.APIServer()}
	for _, spec := range specs {
		if err := l.ensure(ctx, spec); err != nil {
			return err
		}
	}
	err := l.await(ctx, "the API server", func(ctx context.Context) error {
		return l.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}, specs...)
	if err != nil {
		return err
	}
	for _, spec := range []process.Spec{l.node.ControllerManager(), l.node.Scheduler()} {
		if err := l.ensure(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

// waitReady returns when pods can be made and run: the node is ready, and the
// default namespace has the service account that pods run as.
func (l *local) waitReady(ctx context.Context) error {
	err := l.await(ctx, "the node", l.nodeReady, l.node.Kubelet(), l.node.ContainerRuntime(), l.node.Proxy())
	if err != nil {
		return err
	}
	return l.await(ctx, "the controllers", func(ctx context.Context) error {
		_, err := l.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}, l.node.ControllerManager(), l.node.Scheduler())
}

// direct is a proxy function for no proxy: the cluster is on this machine.
func direct(*http.Request) (*url.URL, error) { return nil, nil }

// programNames are the programs of a cluster in the order they are started.
var programNames = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"containerd", "kubelet", "kube-proxy", "coredns",
}

func statusLocal(options Options) ([]ProcessStatus, error) {
	record, err := readRecord(options.Dir)
	if err != nil || record.Boot == "" {
		return nil, err
	}
	statuses := make([]ProcessStatus, 0, len(programNames))
	for _, name := range programNames {
		known := record.Processes[name]
		statuses = append(statuses, ProcessStatus{
			Name: name, PID: known.PID, Running: known.Alive(),
			Log: filepath.Join(options.Dir, "logs", name+".log"),
		})
	}
	return statuses, nil
}
