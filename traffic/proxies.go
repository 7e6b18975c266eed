// SPDX-License-Identifier: Apache-2.0

package traffic

import "k8s.io/apimachinery/pkg/types"

// ProxyReports reads from proxies what they serve.
type ProxyReports interface {
	// Read is what was read of each pod since a split's proxies are to serve a Want. It
	// never waits; what was not read yet is read from now on. Pods are their addresses by
	// UID, and without any nothing is read any more.
	Read(split types.NamespacedName, want Want, pods map[types.UID]string) map[types.UID]Reading
}

// Want is what proxies are to serve.
type Want struct {
	// Generation of the TrafficSplit.
	Generation int64
	// Configuration is the digest of the split.
	Configuration string
}

// Reading is what was read of a proxy.
type Reading struct {
	// Done is false while no reading has ended.
	Done bool
	// Failed is true when the proxy could not be read. Message says why.
	Failed bool
	// Serves is what the proxy serves; zero when that could not be read.
	Serves Want
	// Message is what the proxy has to say.
	Message string
	// Busy is how much of what the proxy takes on at once it has in progress, in steps of 25
	// percent.
	Busy int32
}
