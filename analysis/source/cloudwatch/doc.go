// SPDX-License-Identifier: Apache-2.0

// Package cloudwatch measures by an expression of Amazon CloudWatch: GetMetricData, the
// newest point of the only series, by Amazon's own client. See
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html.
package cloudwatch
