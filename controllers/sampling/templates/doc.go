// SPDX-License-Identifier: Apache-2.0

// Package templates reads the templates that a Rollout names, and finds the Rollouts
// that name one. It does not look into them: package resolve does.
package templates
