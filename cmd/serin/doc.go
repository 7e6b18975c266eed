// SPDX-License-Identifier: Apache-2.0

// Command serin is the one binary of Serin. Its subcommands are its roles: the
// manager runs the controllers, the proxy stands in the path of a Service. This is
// the only place that wires packages together, and it does nothing else.
package main
