// SPDX-License-Identifier: Apache-2.0

// Package connect has the way of the commands to the API of the cluster. It asks the API for
// nothing.
package connect
