// SPDX-License-Identifier: Apache-2.0

// Package tools builds the programs that a local cluster is made of (see
// [Kubernetes], [Helm] and [CoreDNS]) or tested with ([Traefik] and [NetworkPolicies]) from Go
// modules into a cache folder.
//
// Each program has a folder beside this file with a go.mod of its own, which
// pins its version. A build is kept under a key made from that folder's content,
// the Go release and the build flags: what is in the cache under a key is
// complete and never changes. Several processes may build at once.
//
// The package must not know what the programs are used for.
package tools
