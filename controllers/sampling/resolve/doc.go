// SPDX-License-Identifier: Apache-2.0

// Package resolve turns what a Rollout says about metrics, and the templates that it
// names, into metrics that can be measured: arguments have values, defaults are filled
// in, numbers are numbers. It is pure. Its errors name the field and the fix, since they
// are shown to the user. It does not look into queries: package provider does.
package resolve
