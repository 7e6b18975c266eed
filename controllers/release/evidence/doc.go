// SPDX-License-Identifier: Apache-2.0

// Package evidence judges the traffic of a release and keeps the evidence in the status.
// It says whether the canary has failed; what follows is for other packages. It is pure.
package evidence
