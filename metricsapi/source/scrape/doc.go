// SPDX-License-Identifier: Apache-2.0

// Package scrape observes traffic by the counters of Serin's own proxies, which it reads
// once in each window and keeps no longer than needed: the last reading, and the flows of
// the window before it. There is no store.
//
// The metrics are those of proxy/exposition. Their client and server are addresses, or empty where the proxy does not know; without apex a
// request was not split. Flows are seen at the client's side: a proxy stands before the
// server, and sends a request on for its client.
//
// Readings are compared as analysis.Windower does it: a proxy that was not read at both
// ends of a window, restarted in it or counted backwards is left out, and the snapshot
// says so.
package scrape
