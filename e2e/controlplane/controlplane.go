// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/cluster/component"
	"github.com/serin-dev/serin/e2e/cluster/pki"
	"github.com/serin-dev/serin/e2e/cluster/process"
	"github.com/serin-dev/serin/e2e/controlplane/fakenode"
	"github.com/serin-dev/serin/e2e/tools"
)

const (
	// stopGrace is how long the programs get to end by themselves. Their data is
	// thrown away, so there is nothing to wait for.
	stopGrace = 0
	// startAttempts is how often a control plane is started when another program
	// takes the port that was found free.
	startAttempts = 3
	// serviceCIDR is never routed: there is no node.
	serviceCIDR = "10.97.0.0/16"

	name = "controlplane"
)

// auditPolicy records one event per request, with no bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Config is the administrator's. It has no client-side rate limit.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig file.
	Kubeconfig string
	// Dir holds data and logs.
	Dir string
	// AuditLog is the file of the audit log, empty without [Options.Audit].
	AuditLog string
	// Programs finds the built programs, kubectl among them.
	Programs tools.Set

	options  Options
	plane    component.ControlPlane
	clock    clock.Clock
	cancel   context.CancelFunc
	fakeNode sync.WaitGroup

	mu       sync.Mutex
	children map[string]*process.Child
	order    []string // names of children in the order they were started
}

// Start builds what is missing, starts a control plane and returns when it
// serves requests. ctx bounds the start; the control plane runs until
// [ControlPlane.Stop], or until this process dies.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	options = options.withDefaults()
	checkout, err := tools.Locate()
	if err != nil {
		return nil, err
	}
	programs, err := checkout.Builder(options.Out).Build(ctx, tools.Kubernetes)
	if err != nil {
		return nil, err
	}
	if options.Kubernetes != "" {
		programs = programs.With(options.Kubernetes, "kube-apiserver", "kube-controller-manager")
	}
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, options, programs)
		if err == nil {
			return c, nil
		}
		if attempt == startAttempts || !strings.Contains(err.Error(), "address already in use") {
			return nil, err
		}
	}
}

// start makes one attempt and leaves nothing behind when it fails.
func start(ctx context.Context, options Options, programs tools.Set) (_ *ControlPlane, err error) {
	c := &ControlPlane{options: options, Programs: programs, clock: clock.RealClock{}, children: map[string]*process.Child{}}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if err := c.startServers(ctx); err != nil {
		return nil, err
	}
	if options.ControllerManager {
		if err := c.startControllerManager(ctx); err != nil {
			return nil, err
		}
	}
	if options.FakeNode != nil {
		if err := c.startFakeNode(ctx, background); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// prepare writes credentials and configuration.
func (c *ControlPlane) prepare(ctx context.Context) error {
	c.Dir = c.options.Dir
	if c.Dir == "" {
		dir, err := os.MkdirTemp("", "serin-controlplane-")
		if err != nil {
			return fmt.Errorf("make a folder for the control plane: %w", err)
		}
		c.Dir = dir
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	loopback := net.IPv4(127, 0, 0, 1)
	c.plane = component.ControlPlane{
		Programs: c.Programs, Dir: c.Dir, Credentials: pki.Folder(filepath.Join(c.Dir, "pki")),
		Address: loopback, Port: port, ServiceCIDR: serviceCIDR,
		// No node routes the addresses of Services, so aggregated API servers are
		// reached by their endpoints.
		APIServerArgs: append([]string{"--enable-aggregator-routing=true"}, c.options.APIServerArgs...),
		ControllerManagerArgs: []string{
			// Nobody wants to wait for what is looked at every five or fifteen seconds.
			"--node-monitor-period=1s", "--horizontal-pod-autoscaler-sync-period=1s",
			// Everybody reads EndpointSlices. The API that they came after is written as often.
			"--controllers=*,-endpoints-controller,-endpointslice-mirroring-controller",
		},
	}
	if c.options.Audit {
		c.AuditLog = filepath.Join(c.Dir, "audit.log")
		c.plane.AuditLog, c.plane.AuditPolicy = c.AuditLog, filepath.Join(c.Dir, "audit-policy.yaml")
		if err := os.WriteFile(c.plane.AuditPolicy, []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("write the audit policy: %w", err)
		}
	}
	hosts := pki.Hosts{DNSNames: component.ServerNames(), Addresses: []net.IP{loopback}, NodeName: fakenode.NodeName}
	if err := c.plane.Credentials.Create(hosts, c.clock.Now()); err != nil {
		return err
	}
	return c.writeKubeconfigs()
}

func (c *ControlPlane) writeKubeconfigs() error {
	c.Kubeconfig = c.plane.Kubeconfig("admin")
	for path, user := range map[string]pki.User{
		c.Kubeconfig: pki.Admin,
		c.plane.Kubeconfig("kube-controller-manager"): component.ControllerManagerUser,
	} {
		content, err := c.plane.Credentials.Kubeconfig(name, c.plane.Server(), user, c.clock.Now())
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", user.Name, err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1 // no limit: tests are in a hurry
	c.Config = config
	return nil
}

// ConfigFor is a configuration for a user in groups, with no right but what
// RBAC gives to them.
func (c *ControlPlane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	content, err := c.plane.Credentials.Kubeconfig(name, c.plane.Server(), pki.User{Name: user, Groups: groups}, c.clock.Now())
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %q: %w", user, err)
	}
	config.QPS = -1
	return config, nil
}

// Stop ends everything and removes the data, unless the folder was given. It
// may be called again.
func (c *ControlPlane) Stop() error {
	c.cancel()
	c.fakeNode.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Backward(c.order) {
		c.children[name].Stop(c.clock, stopGrace)
	}
	if c.options.Dir == "" && c.Dir != "" {
		if err := os.RemoveAll(c.Dir); err != nil {
			return fmt.Errorf("remove the folder of the control plane: %w", err)
		}
	}
	return nil
}

// RestartAPIServer kills the API server and returns when a new one serves
// requests on the same port. Watches break, as they do in a cluster.
func (c *ControlPlane) RestartAPIServer(ctx context.Context) error {
	c.StopAPIServer()
	return c.StartAPIServer(ctx)
}

// StopAPIServer kills the API server, for tests of what happens without one.
func (c *ControlPlane) StopAPIServer() {
	c.mu.Lock()
	child := c.children[c.plane.APIServer().Name]
	c.mu.Unlock()
	child.Stop(c.clock, stopGrace)
}

// StartAPIServer starts the API server again after [ControlPlane.StopAPIServer] and
// returns when it serves requests.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := c.startChild(c.plane.APIServer()); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

// startFakeNode returns when the fake node serves pods.
func (c *ControlPlane) startFakeNode(ctx, background context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	options := *c.options.FakeNode
	if options.OnError == nil {
		options.OnError = func(err error) { fmt.Fprintln(c.options.Out, err) }
	}
	ready, failed := make(chan struct{}), make(chan error, 1)
	c.fakeNode.Go(func() {
		failed <- fakenode.Run(background, client, options, func() { close(ready) })
	})
	select {
	case <-ready:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// freePort finds a port of the loopback address that nobody listens on.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// pollPeriod is how often readiness is asked for.
const pollPeriod = 50 * time.Millisecond
