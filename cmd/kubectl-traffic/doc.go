// SPDX-License-Identifier: Apache-2.0

// Command kubectl-traffic is a plugin of kubectl: it is run as "kubectl traffic".
//
// Each verb is a file of its own and is listed in the group it belongs to. The
// plugin does what a user can do with kubectl and the API; it must not import the
// controllers.
package main
