// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/serin-dev/serin/e2e/cluster/component"
)

// registryHosts is what containerd reads about a registry.
const registryHosts = `server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`

// AllowHTTP has the nodes of a local cluster pull from a registry without TLS, such as one of
// a test on this machine.
func (c *Cluster) AllowHTTP(registry string) error {
	if !c.Local {
		return errors.New("how nodes pull images is only changed in a local cluster")
	}
	node := component.Node{ControlPlane: component.ControlPlane{Dir: c.options.Dir}}
	folder := filepath.Join(node.Registries(), registry)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the registry %s: %w", registry, err)
	}
	return os.WriteFile(filepath.Join(folder, "hosts.toml"), fmt.Appendf(nil, registryHosts, registry), 0o644)
}
