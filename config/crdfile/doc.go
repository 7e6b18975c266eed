// SPDX-License-Identifier: Apache-2.0

// Package crdfile rewrites the files of generated CRDs, each in the same form: indented by two
// spaces, lists not at all.
package crdfile
