// SPDX-License-Identifier: Apache-2.0

// Package udp splits the UDP ports of a split, session by session, in the agent itself.
//
//	datagram of a client ──> session ──> its backend
//	                            │ none: draw by weight, among backends that answer (outliers.go)
//	                            └ refused: the datagrams of before go to another one
//
// The package renders nothing and keeps nothing on disk: a session that is forgotten begins
// anew with its next datagram.
package udp
