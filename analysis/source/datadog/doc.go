// SPDX-License-Identifier: Apache-2.0

// Package datadog measures by a query of Datadog's metrics: GET /api/v1/query, the
// newest point of the only series. See
// https://docs.datadoghq.com/api/latest/metrics/#query-timeseries-points.
package datadog
