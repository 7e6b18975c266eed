// SPDX-License-Identifier: Apache-2.0

// Package integration runs Serin's controllers against a real API server and the
// real controllers of Kubernetes. There is no node: pods, the proxies' reports
// and the measured traffic are stand-ins, and everything else is what a cluster
// has. The tests show what only the real Deployment controller can show:
// that a canary's pods become the Deployment's pods.
package integration
