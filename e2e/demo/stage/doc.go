// SPDX-License-Identifier: Apache-2.0

// Package stage plays the story of the demo on a real cluster: it installs Serin
// with helm, applies the examples with kubectl, kills parts of Serin on request,
// and sees the state by watching the API.
//
// What it sees comes from watches and from the load generator's report, which is
// read through the API server so that it works on every cluster. It never reads
// the text that a command prints.
package stage
