// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// module holds the definitions of the Gateway API's kinds.
const module = "sigs.k8s.io/gateway-api"

// definitions are the files of the kinds to install, below the module's folder.
// Kinds are taken from the standard channel, as most clusters have them. That one
// serves TCPRoutes, TLSRoutes and UDPRoutes in version v1 only, while Traefik
// watches v1alpha2, which the experimental channel serves beside it.
var definitions = []string{
	"config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml",
	"config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
	"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
	"config/crd/standard/gateway.networking.k8s.io_grpcroutes.yaml",
	"config/crd/standard/gateway.networking.k8s.io_referencegrants.yaml",
	"config/crd/standard/gateway.networking.k8s.io_backendtlspolicies.yaml",
	"config/crd/experimental/gateway.networking.k8s.io_tcproutes.yaml",
	"config/crd/experimental/gateway.networking.k8s.io_tlsroutes.yaml",
	"config/crd/experimental/gateway.networking.k8s.io_udproutes.yaml",
}

// definitionFiles returns the paths of the definitions, in the version of the module
// that the go.mod in folder requires. The go command fetches it where it is missing.
func definitionFiles(ctx context.Context, folder string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = folder
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("fetch the Go module %s: %w\n%s", module, err, output)
	}
	var fetched struct{ Dir string }
	if err := json.Unmarshal(output, &fetched); err != nil {
		return nil, fmt.Errorf("read where the Go module %s is: %w", module, err)
	}
	var files []string
	for _, name := range definitions {
		files = append(files, filepath.Join(fetched.Dir, filepath.FromSlash(name)))
	}
	return files, nil
}
