// SPDX-License-Identifier: Apache-2.0

// Package observe is the form in which traffic passes between the parts of the
// TrafficMetrics API: what a Source has seen of requests, what the cluster says
// about the ends of them, and what is asked.
//
//	request ──► Provider ──► Source: flows of the last window
//	               └───────► Inventory: whose pods the ends of a flow are
//	               └──► aggregate: flows × inventory → TrafficMetrics
//
// Flows are the most granular form; every resource of the API is a sum of flows. A
// number that a Source does not have is absent, never zero.
package observe
