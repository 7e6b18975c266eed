// SPDX-License-Identifier: Apache-2.0

// Package terminal is between the plugin and the user's terminal: what the cluster
// sends can't move the cursor, hide text or change colours there, and a picture that
// changes is drawn where the last one was.
package terminal
