// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/skew"
	"github.com/serin-dev/serin/skew/kinds"
)

// CheckSkew refuses what the plugin would decide with kinds that it may not know: those of an
// operator more than one minor version apart. Where the cluster does not say of which version
// they are, it decides.
func (c *Cluster) CheckSkew() error {
	served, err := c.KindsVersion()
	if err != nil {
		return nil //nolint:nilerr // what is asked next says what is wrong
	}
	return checkSkew(build.Version(), served)
}

func checkSkew(plugin, served string) error {
	why := skew.Refusal(skew.Part{Name: "the plugin", Version: plugin}, skew.Part{Name: "Serin in this cluster", Version: served})
	if why == "" {
		return nil
	}
	return errors.New(why + ": install kubectl traffic " + served)
}

// KindsVersion is of which version the cluster says that Serin's kinds are; "" where it does not.
func (c *Cluster) KindsVersion() (string, error) {
	cluster, err := c.flags.ToDiscoveryClient()
	if err != nil {
		return "", err
	}
	return kinds.Version(cluster.OpenAPIV3())
}
