// SPDX-License-Identifier: Apache-2.0

// Package rolloutinit writes the first Rollout of a Deployment: it finds the Service that
// clients call, and says in comments why the steps are what they are. It is pure: what the
// cluster has is handed over.
package rolloutinit
