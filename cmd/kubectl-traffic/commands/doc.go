// SPDX-License-Identifier: Apache-2.0

// Package commands has the commands of kubectl traffic, in a folder each: they read flags, ask the API
// server with the rights of the user, and print. What is decided is decided in the
// pure packages beside it. Whatever is printed is cleaned of what controls a terminal.
package commands
