// SPDX-License-Identifier: Apache-2.0

// Package proxytest has what the tests of several rooms of the proxy need: folders in
// memory, free ports, backends and clients of UDP, and the check that the counts of clients
// add up. No product code imports it.
package proxytest
