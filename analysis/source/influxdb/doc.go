// SPDX-License-Identifier: Apache-2.0

// Package influxdb measures by a query in Flux: POST /api/v2/query, the newest row of
// the only table, in the columns _time and _value of its annotated CSV. See
// https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/.
package influxdb
