// SPDX-License-Identifier: Apache-2.0

// Package smi is the router of splits that a service mesh serves by itself. It writes
// nothing: the mesh reads the TrafficSplit. As no mesh says what its proxies serve,
// a change counts as programmed after a time.
package smi
