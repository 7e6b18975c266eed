// SPDX-License-Identifier: Apache-2.0

// Package counts the requests of the access log, keeps the counts in a file with the
// position that they were read to, and shows them as metrics of the package exposition.
//
//	accesslog.Tailer ──> Take ──> by kind, backend and status; by client (flows.go) ──> Collect
//	                      Save <── the counts and the position, in one file
//
// Each line counts once, however the processes end that count it. The package knows nothing
// of weights and judges nothing.
package counts
