// SPDX-License-Identifier: Apache-2.0

// Package connect has the way to the API of the cluster for the commands beside the manager.
// It asks the API for nothing.
package connect
