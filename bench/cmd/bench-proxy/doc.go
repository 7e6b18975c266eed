// SPDX-License-Identifier: Apache-2.0

// Command bench-proxy compares a proxy of Serin with a plain nginx on this machine,
// in turns within one run, and measures how long a change of weights takes at two
// proxies. It prints a table and decides nothing: how fast a machine is today is
// no reason for a test to fail.
package main
