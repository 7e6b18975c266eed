// SPDX-License-Identifier: Apache-2.0

package traffic

import "fmt"

// Served is how a cluster serves TrafficSplits. A mesh may have brought the kind, in an
// older version of the specification and without what this operator adds. The zero
// value is the kind of this operator.
type Served struct {
	// Version of the group, such as v1alpha2; "" for v1alpha4.
	Version string
	// NoStatus is true when splits have no status: what is said of one is kept in its
	// annotation serin.dev/status.
	NoStatus bool
	// NoMatches is true when splits can't be limited to some requests.
	NoMatches bool
}

// RefuseMatches says why a split must not be limited to some requests; "" when it may be.
// The API server would drop spec.matches, and every request would be split.
func (s Served) RefuseMatches() string {
	if !s.NoMatches {
		return ""
	}
	return fmt.Sprintf("TrafficSplits of this cluster are served in the version %s, which can't be limited to some requests; "+
		"install trafficsplits.split.smi-spec.io of this operator's chart and restart the operator", s.Version)
}

// RefuseProxies says why no router with proxies of its own can serve a split; "" when one can.
func (s Served) RefuseProxies() string {
	if !s.NoStatus {
		return ""
	}
	return fmt.Sprintf("TrafficSplits of this cluster, served in the version %s, are not those that proxies read; "+
		"install trafficsplits.split.smi-spec.io of this operator's chart and restart the operator", s.Version)
}
