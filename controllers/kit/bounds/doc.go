// SPDX-License-Identifier: Apache-2.0

// Package bounds limits how long a controller waits: between two tries, for a cache, and
// for the end of a reconcile. It also judges whether the caches of the process follow the
// API, which the operator's liveness probe reports.
//
//	Options        | retries and the deadline of a controller
//	NewClient      | a client whose reads of a cache end in time
//	Lag            | whether a cache stopped following, pure
//	Caches         | the probe and the metrics of that
//	NewCache       | a cache that keeps no manager from its end
//	SlotUse        | the metrics of slots that namespaces share
package bounds
