// SPDX-License-Identifier: Apache-2.0

// Package generator calls an HTTP server at a constant rate and counts what
// comes back, by the version that answered.
//
// The load is open loop: a request is sent when it is due, however slow the
// answers before it are, because users do not wait for each other. It uses a mix
// of connections that live for some requests and of new ones, because Services
// balance connections and proxies drain them.
//
// It begins when the target has answered once, so that a Service that is still
// being set up is not taken for one that fails.
//
// It must count every request exactly once and never hide a failure: it repeats
// no request. net/http itself repeats a GET on a new connection when an idle one
// turns out to be closed before a byte of the answer came; those are counted in
// Report.Retried.
package generator
