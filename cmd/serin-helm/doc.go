// SPDX-License-Identifier: Apache-2.0

// Command serin-helm runs Helm for the manager of Serin: it renders one release, or upgrades
// it, and ends.
//
// It reads a releases.Call on standard input and writes a releases.Answer on standard output.
// File 3 is the only way out: a connection that the manager serves as an API server, acting as
// the account of the namespace. The process has no credentials and, where the kernel offers
// that, can open no file and no other connection. The manager limits its memory and its time.
package main
