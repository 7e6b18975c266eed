// SPDX-License-Identifier: Apache-2.0

// Command pause does nothing: its process holds the namespaces of a pod while
// the containers of the pod come and go.
package main
