// SPDX-License-Identifier: Apache-2.0

// Command crdlines writes each paragraph of the descriptions in generated CRDs on one
// line. The generator keeps the line breaks of the Go comments, each with the
// indentation of its place in the schema, which makes up a third of a file; readers
// of kubectl explain get the lines wrapped for their terminal either way.
// It must not change anything else.
//
//	crdlines FILE...
package main
