// SPDX-License-Identifier: Apache-2.0

// Command crdversions has the generated CRD of TrafficSplits serve the older versions of the
// specification too, for the tools that write those. Each has the schema of the stored version
// but for the weight, which clients of these versions leave out when it is 0, and without the
// descriptions, so that conversion by name alone loses nothing: the API server drops what the
// schema of the version that is written does not know.
//
//	crdversions FILE VERSION...
package main
