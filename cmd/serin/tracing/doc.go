// SPDX-License-Identifier: Apache-2.0

// Package tracing exports the spans of the manager by OTLP, and makes those of its requests: to
// the API server, and for metrics. The nil *Traces is tracing that is off: it wraps nothing.
//
// It must not put into a span what may be secret: neither the path nor the query nor the body of
// a request to what users name.
package tracing
