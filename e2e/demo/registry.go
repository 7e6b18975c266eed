// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"

	"github.com/serin-dev/serin/e2e/cluster"
	"github.com/serin-dev/serin/e2e/demo/stage"
	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/images/publish"
	"github.com/serin-dev/serin/e2e/registry"
)

// Push starts a registry that the local cluster reaches and pushes images to it as a release
// does. It serves until this process ends; the node keeps what it has pulled.
func Push(ctx context.Context, c *cluster.Cluster, out io.Writer, list ...images.Image) (*stage.Pull, error) {
	if !c.Local {
		return nil, errors.New("only a local cluster can pull from a registry on this machine; push the images to one that your cluster reaches with make images")
	}
	server, err := registry.Start(context.WithoutCancel(ctx), net.JoinHostPort(c.MachineAddress, "0"), true)
	if err != nil {
		return nil, err
	}
	if err := c.AllowHTTP(server.Address); err != nil {
		return nil, err
	}
	publisher, err := publish.New(ctx, publish.Options{
		Version: "dev", Images: list, Architectures: []string{runtime.GOARCH}, Changed: true, Push: true,
		Registry: publish.Registry{Host: server.Address, Keychain: server, Insecure: true},
		Builder:  images.Homepage + "/blob/main/docs/release.md#by-hand", Out: out,
	})
	if err != nil {
		return nil, err
	}
	if _, err := publisher.Images(ctx); err != nil {
		return nil, fmt.Errorf("push the images: %w", err)
	}
	config, err := server.DockerConfig()
	return &stage.Pull{Registry: server.Address, DockerConfig: config}, err
}
