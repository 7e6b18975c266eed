// SPDX-License-Identifier: Apache-2.0

// Command serin-proxy is the data plane of Serin: the agent that runs nginx in a proxy's pod.
//
// It is a program of its own, so that what carries traffic holds no client of Helm or of a
// cloud; a test of its imports keeps that.
package main
