// SPDX-License-Identifier: Apache-2.0

// Package providers makes what measures a metric: it is the one place that knows every
// kind of source. It fills in defaults, arguments and credentials; it measures nothing
// itself. A new source is a folder in analysis/source and a function here.
package providers
