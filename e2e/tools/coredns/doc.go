// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with only the plugins that the cluster's own DNS
// needs. The upstream binary also links cloud providers' libraries, which would
// triple the time to build it.
package main
