// SPDX-License-Identifier: Apache-2.0

// Package page has the page of the dashboard: its sources in src, and in built what
// `make generate-page` makes of them. The built page is committed, so that a machine with
// nothing but Go builds the plugin.
package page
