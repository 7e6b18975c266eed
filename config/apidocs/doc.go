// SPDX-License-Identifier: Apache-2.0

// Command apidocs writes a page for each kind of the generated CRDs: its fields with types,
// defaults, limits and rules, in the words of the schema. It must not say anything that the
// schema does not.
//
//	apidocs CRDS PAGES
package main
