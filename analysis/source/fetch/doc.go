// SPDX-License-Identifier: Apache-2.0

// Package fetch makes the HTTP calls of sources: one request, one JSON answer, within
// a time limit, over a client that package egress made. Whatever goes wrong becomes a
// source.MissingError in words of our own. It does not know what the answers mean.
package fetch
