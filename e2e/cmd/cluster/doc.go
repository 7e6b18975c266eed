// SPDX-License-Identifier: Apache-2.0

// Command cluster starts, repairs and removes a local Kubernetes cluster, and
// puts the images of Serin and of its demo into it.
package main
