// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "time"

// DefaultSettle is how long proxies are given to follow routes that are confirmed. A
// route's status says that it was taken, never that every proxy serves it.
const DefaultSettle = 5 * time.Second

// Options of the router.
type Options struct {
	// Served is what the cluster serves: see Discover.
	Served Served
	// Default is true when splits that name no router are this one's. Of others' splits
	// it looks for nothing but what it left.
	Default bool
	// Settle is how long proxies are given to follow. Default DefaultSettle.
	Settle time.Duration
}
