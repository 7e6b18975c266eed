// SPDX-License-Identifier: Apache-2.0

// Command bench-controller prints what releases cost a cluster: requests, processor
// time and memory of the operator, and how fast it reacts.
package main
