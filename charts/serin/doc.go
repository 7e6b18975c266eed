// SPDX-License-Identifier: Apache-2.0

// Package chart is here for its tests: the folder is the Helm chart of the
// operator. It must hold no other Go code; helm leaves Go files out.
package chart
