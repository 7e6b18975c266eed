// SPDX-License-Identifier: Apache-2.0

// Package graphite measures by a target of Graphite: GET /render, the newest point of
// the only series. See https://graphite.readthedocs.io/en/latest/render_api.html.
package graphite
