// SPDX-License-Identifier: Apache-2.0

// Package openapi describes the types that the TrafficMetrics API answers with, for
// OpenAPI v2 and v3. What concerns this repository's own types is generated from their
// comments; the rest comes from the libraries that define it.
package openapi
