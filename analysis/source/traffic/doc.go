// SPDX-License-Identifier: Apache-2.0

// Package traffic measures by the windows of Serin's own proxies: the canary's success
// rate, or a quantile of its latency, since the last measurement. Quantiles are bounds of
// the histogram, never interpolated.
package traffic
