// SPDX-License-Identifier: Apache-2.0

// Package bench measures what releases cost a cluster: the requests of the
// operator, its processor time and memory, and how fast it reacts.
//
// The operator is the real binary in a process of its own, under the rights, the
// flags and the environment that the chart gives it. The API server and the
// controllers of Kubernetes are real; pods are a stand-in's. Requests are counted
// by the API server, in its audit log, and what a process used by the kernel: the
// operator has no part in its own measurement.
package bench
