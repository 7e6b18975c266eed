// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
)

// warnOfFirewall says so when the machine drops what it would forward: then pods
// do not reach each other. It is the machine's owner who decides on that.
func (l *local) warnOfFirewall(ctx context.Context) error {
	chains, err := run(ctx, "nft", "list", "chains")
	if err == nil && dropsForwarded(chains) {
		l.options.say("warning: the firewall of this machine drops forwarded packets (as Docker sets it up), " +
			"so pods may not reach each other; see docs/local-cluster.md")
	}
	return nil // what cannot be found out is no reason to stop
}

// dropsForwarded tells whether a chain for forwarded packets drops those that no
// rule accepts. Its line reads "type filter hook forward priority filter; policy drop;".
func dropsForwarded(chains string) bool {
	for line := range strings.Lines(chains) {
		if strings.Contains(line, "hook forward") && strings.Contains(line, "policy drop") {
			return true
		}
	}
	return false
}
