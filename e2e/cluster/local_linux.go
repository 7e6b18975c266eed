// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serin-dev/serin/e2e/cluster/component"
	"github.com/serin-dev/serin/e2e/cluster/pki"
	"github.com/serin-dev/serin/e2e/cluster/process"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

const (
	// contextName names the cluster, the user and the context in its kubeconfig.
	contextName = "serin"
	nodeName    = "serin-node"
	// apiServerPort is free in the cluster's own network namespace.
	apiServerPort = 6443
	// readyTimeout bounds the start of one program, on a machine that is busy.
	readyTimeout = 3 * time.Minute
)

// local is the cluster that runs on this machine.
type local struct {
	options  Options
	checkout tools.Checkout
	programs tools.Set
	record   *record
	networks networks
	node     component.Node
	config   *rest.Config
	client   kubernetes.Interface
	// started tells whether anything had to be started.
	started bool
	// kubeletStarted is when the kubelet was started by this command, if it was.
	kubeletStarted time.Time
}

// upLocal starts the cluster of this machine, or finds it running.
func upLocal(ctx context.Context, options Options, checkout tools.Checkout) (*Cluster, error) {
	if err := possible(); err != nil {
		return nil, err
	}
	release, err := lockDir(ctx, options)
	if err != nil {
		return nil, err
	}
	defer release()
	began := options.Clock.Now()
	programs, err := checkout.Builder(options.Out).Build(ctx, tools.Kubernetes, tools.CoreDNS, tools.Helm)
	if err != nil {
		return nil, err
	}
	l := &local{options: options, checkout: checkout, programs: programs}
	if err := l.up(ctx); err != nil {
		return nil, err
	}
	bin := filepath.Join(options.Dir, "bin")
	if err := offer(bin, programs, "kubectl", "helm"); err != nil {
		return nil, err
	}
	if l.started {
		options.say("the cluster is ready, after %s", options.Clock.Since(began).Round(100*time.Millisecond))
	} else {
		options.say("the cluster is running already")
	}
	return l.cluster(bin), nil
}

func (l *local) cluster(bin string) *Cluster {
	return &Cluster{
		Kubeconfig: l.kubeconfig(), Context: contextName,
		Kubectl: filepath.Join(bin, "kubectl"), Helm: filepath.Join(bin, "helm"), Tools: bin,
		Local: true, MachineAddress: l.networks.machine.Addr().String(),
		Services: l.networks.services,
		options:  l.options, images: l.store(), network: netns(l.options.Dir),
	}
}

// up is the order in which a cluster comes to life. Each step leaves alone what is there.
func (l *local) up(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"read what is known of the cluster", l.open},
		{"install packages", l.installPackages},
		{"choose networks", l.joinMachine},
		{"make the network", l.prepareNetwork},
		{"write credentials and configuration", l.writeFiles},
		{"start the control plane", l.startControlPlane},
		{"start the node", l.startNode},
		{"start DNS", l.startDNS},
		{"wait for the node", l.waitReady},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// open reads the record and clears what an earlier boot of the machine left.
func (l *local) open(context.Context) error {
	if err := os.MkdirAll(l.options.Dir, 0o700); err != nil {
		return err
	}
	var err error
	if l.record, err = readRecord(l.options.Dir); err != nil {
		return err
	}
	boot, err := process.BootID()
	if err != nil {
		return err
	}
	if l.record.forget(boot) {
		l.options.say("the machine was started anew since: the cluster's containers are made again")
		if err := removeRuntimeState(l.options.Dir); err != nil {
			return err
		}
	}
	return l.record.write()
}

// writeFiles renders what the programs read. Content that is the same is not
// written again: a change is what makes a program be started anew.
func (l *local) writeFiles(context.Context) error {
	l.node = l.makeNode()
	addresses := []net.IP{l.node.Address, l.networks.api.AsSlice(), net.IPv4(127, 0, 0, 1)}
	hosts := pki.Hosts{DNSNames: component.ServerNames(), Addresses: addresses, NodeName: nodeName}
	if err := l.node.Credentials.Create(hosts, l.options.Clock.Now()); err != nil {
		return err
	}
	files, err := l.node.Files()
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := writeChanged(path, content); err != nil {
			return err
		}
	}
	if err := l.writeKubeconfigs(); err != nil {
		return err
	}
	if l.config, err = clientcmd.BuildConfigFromFlags("", l.kubeconfig()); err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	l.config.Proxy = direct
	l.client, err = kubernetes.NewForConfig(l.config)
	return err
}

func (l *local) makeNode() component.Node {
	dir := l.options.Dir
	return component.Node{
		ControlPlane: component.ControlPlane{
			Programs: l.programs, Dir: dir, Credentials: pki.Folder(filepath.Join(dir, "pki")),
			Address: l.networks.node.Addr().AsSlice(), Port: apiServerPort, ServiceCIDR: l.networks.services.String(),
		},
		NodeName: nodeName,
		PodCIDR:  l.networks.pods.String(), DNSAddress: l.networks.dns.AsSlice(),
		PauseImage: images.Pause.Reference,
		Containerd: "/usr/bin/containerd", CNIPlugins: "/usr/lib/cni",
	}
}

// writeKubeconfigs makes one file per user, unless it is there for the same server.
func (l *local) writeKubeconfigs() error {
	n := l.node
	for path, user := range map[string]pki.User{
		l.kubeconfig():                          pki.Admin,
		n.Kubeconfig("kube-controller-manager"): component.ControllerManagerUser,
		n.Kubeconfig("kube-scheduler"):          component.SchedulerUser,
		n.Kubeconfig("kubelet"):                 n.KubeletUser(),
		n.ProxyKubeconfig():                     component.ProxyUser,
		n.DNSKubeconfig():                       component.DNSUser,
	} {
		if l.fits(path) {
			continue
		}
		content, err := n.Credentials.Kubeconfig(contextName, n.Server(), user, l.options.Clock.Now())
		if err != nil {
			return err
		}
		if err := writeChanged(path, content); err != nil {
			return err
		}
	}
	return nil
}

// fits tells whether a kubeconfig is for this server and signed by this authority.
func (l *local) fits(path string) bool {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || config.Clusters[contextName] == nil {
		return false
	}
	authority, err := os.ReadFile(l.node.Credentials.Certificate(pki.ClusterCA))
	if err != nil {
		return false
	}
	cluster := config.Clusters[contextName]
	return cluster.Server == l.node.Server() && string(cluster.CertificateAuthorityData) == string(authority)
}

func (l *local) kubeconfig() string { return filepath.Join(l.options.Dir, "kubeconfig") }

// lockDir keeps two commands from working on one cluster at once. The lock is
// beside the folder, which the removal of the cluster deletes.
func lockDir(ctx context.Context, options Options) (func(), error) {
	return tools.Lock(ctx, options.Dir+".lock", func() {
		options.say("another command is working on this cluster, waiting")
	})
}

// possible tells why no cluster can run here, if so.
func possible() error {
	if os.Geteuid() != 0 {
		return &NotPossibleError{
			Reason: "a node needs root, for namespaces, mounts and network rules",
			Remedy: "run this as root, or name an existing cluster with " + KubeconfigVariable,
		}
	}
	return nil
}

func writeChanged(path string, content []byte) error {
	if present, err := os.ReadFile(path); err == nil && string(present) == string(content) {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600))
}
