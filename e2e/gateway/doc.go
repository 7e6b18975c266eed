// SPDX-License-Identifier: Apache-2.0

// Package gateway puts Traefik, an implementation of the Gateway API, into a cluster
// and takes it away again: the definitions of the API's kinds, the controller with
// the smallest role that it works with, and one Gateway for routes of all namespaces.
//
// The definitions are those of the Gateway API's Go module, in the version that this
// module requires; Traefik's image is [github.com/serin-dev/serin/e2e/images.Traefik].
//
// The package must not know what is routed.
package gateway
