// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/serin-dev/serin/cmd/build"
)

// Config is how an agent reaches the API, without a limit of requests: the API server has
// its own, by priority and fairness.
func Config(agent string) (*rest.Config, error) {
	found, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API: %w", err)
	}
	found.UserAgent, found.QPS = agent+"/"+build.Version(), -1
	return found, nil
}
