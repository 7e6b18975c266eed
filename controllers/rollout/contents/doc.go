// SPDX-License-Identifier: Apache-2.0

// Package contents remembers the digests of the ConfigMaps and Secrets that Rollouts depend on,
// and who depends on which. It reads nothing itself.
package contents
