// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

const (
	// Namespace is where Traefik runs, and its Gateway is.
	Namespace = "traefik"
	// Name is that of the Gateway, for the parentRefs of routes.
	Name = "traefik"
	// Host leads to the Gateway's HTTP listener from inside of the cluster.
	Host = "traefik.traefik"
	// LongHost does too. A route can be for either.
	LongHost = Host + ".svc.cluster.local"

	// readyLimit bounds how long Traefik may take to start and to report.
	readyLimit = "90s"
)

//go:embed traefik.yaml
var manifest []byte

// Gateway is Traefik in a cluster.
type Gateway struct {
	// Cluster that it runs in.
	Cluster *cluster.Cluster
	// Checkout holds what it is built from.
	Checkout tools.Checkout
	// Out is told what is built and done.
	Out io.Writer
}

// Build builds Traefik, which takes some minutes the first time.
func (g Gateway) Build(ctx context.Context) error {
	_, err := g.Checkout.Builder(g.Out).Build(ctx, tools.Traefik)
	return err
}

// Install puts Traefik into the cluster, builds it where needed, and returns when its
// Gateway is ready for routes. What is there already stays.
func (g Gateway) Install(ctx context.Context) error {
	if err := images.Load(ctx, images.NewBuilder(g.Checkout, g.Out), g.Cluster, images.Traefik); err != nil {
		return fmt.Errorf("put Traefik into the cluster: %w", err)
	}
	files, err := g.definitionFlags(ctx)
	if err != nil {
		return err
	}
	for _, step := range [][]string{
		append([]string{"apply", "--server-side"}, files...),
		append([]string{"wait", "--for=condition=Established", "--timeout=" + readyLimit}, files...),
		{"apply", "-f", "-"},
		{"rollout", "status", "--namespace", Namespace, "deployment/" + Name, "--timeout=" + readyLimit},
		{"wait", "--for=condition=Programmed", "--namespace", Namespace, "gateway/" + Name, "--timeout=" + readyLimit},
	} {
		if err := g.kubectl(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes Traefik and the kinds of the Gateway API away, and with the kinds
// every route of the cluster. Nothing happens where nothing is installed.
func (g Gateway) Remove(ctx context.Context) error {
	files, err := g.definitionFlags(ctx)
	if err != nil {
		return err
	}
	// The objects are named one by one: when their kind is gone already,
	// `kubectl delete -f` of the manifest would fail.
	for _, step := range [][]string{
		append([]string{"delete", "--ignore-not-found", "--timeout=" + readyLimit}, files...),
		{"delete", "--ignore-not-found", "--timeout=" + readyLimit, "namespace/" + Namespace, "clusterrole/" + Name, "clusterrolebinding/" + Name},
	} {
		if err := g.kubectl(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

func (g Gateway) definitionFlags(ctx context.Context) ([]string, error) {
	files, err := definitionFiles(ctx, filepath.Join(g.Checkout.Root, "e2e"))
	if err != nil {
		return nil, err
	}
	var flags []string
	for _, file := range files {
		flags = append(flags, "-f", file)
	}
	return flags, nil
}

// kubectl runs the command. One that reads standard input gets the manifest.
func (g Gateway) kubectl(ctx context.Context, args ...string) error {
	fmt.Fprintf(g.Out, "gateway: kubectl %s\n", args[0])
	// A flag with an empty value is as good as none.
	args = append(args, "--kubeconfig", g.Cluster.Kubeconfig, "--context", g.Cluster.Context)
	command := exec.CommandContext(ctx, g.Cluster.Kubectl, args...)
	command.Stdin = bytes.NewReader(manifest)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", args[0], err, output)
	}
	return nil
}
