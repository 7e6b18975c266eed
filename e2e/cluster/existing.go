// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// kindPrefix begins the names of contexts that kind makes; the rest is the cluster's name.
const kindPrefix = "kind-"

// connect uses a cluster that exists already: it only has to answer.
func connect(ctx context.Context, options Options, checkout tools.Checkout) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = options.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: options.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the cluster to use (%s, %s): %w", KubeconfigVariable, ContextVariable, err)
	}
	version, err := serverVersion(config)
	if err != nil {
		return nil, fmt.Errorf("the cluster at %s does not answer: %w", config.Host, err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the cluster to use: %w", err)
	}
	name := options.Context
	if name == "" {
		name = raw.CurrentContext
	}
	options.say("using the cluster at %s, Kubernetes %s", config.Host, version)
	kubectl, helm, err := clientPrograms(ctx, options, checkout)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Kubeconfig: options.Kubeconfig, Context: name,
		Kubectl: kubectl, Helm: helm,
		options: options, images: foreignStore{context: name},
	}, nil
}

func serverVersion(config *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

// clientPrograms uses the kubectl of this machine and builds only helm: a person
// with a cluster has a kubectl that fits it.
func clientPrograms(ctx context.Context, options Options, checkout tools.Checkout) (kubectl, helm string, err error) {
	wanted := []tools.Tool{tools.Helm}
	kubectl, missing := exec.LookPath("kubectl")
	if missing != nil {
		wanted = append(wanted, tools.Kubernetes)
	}
	programs, err := checkout.Builder(options.Out).Build(ctx, wanted...)
	if err != nil {
		return "", "", err
	}
	if missing != nil {
		kubectl = programs.Path("kubectl")
	}
	return kubectl, programs.Path("helm"), nil
}

// foreignStore is the images of a cluster that was not started here. Only kind's can be reached.
type foreignStore struct{ context string }

// digests knows nothing, so that everything is loaded; kind leaves out what it has.
func (foreignStore) digests(context.Context) (map[string]string, error) { return nil, nil }

func (s foreignStore) load(ctx context.Context, archive images.Archive) error {
	name, isKind := strings.CutPrefix(s.context, kindPrefix)
	if !isKind {
		return fmt.Errorf("no way is known to put images into the cluster of context %q: load %s by that cluster's own means, or push the image to a registry that it reads",
			s.context, archive.Path)
	}
	output, err := exec.CommandContext(ctx, "kind", "load", "image-archive", filepath.Clean(archive.Path), "--name", name).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the context %q is kind's but there is no kind in PATH: install it, or load %s by hand", s.context, archive.Path)
	}
	if err != nil {
		return fmt.Errorf("kind load image-archive: %w\n%s", err, output)
	}
	return nil
}
