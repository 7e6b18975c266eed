// SPDX-License-Identifier: Apache-2.0

// Package dashboard is the command serin dashboard: the page of kubectl traffic dashboard, served
// in the cluster to users who log in. The process has no credentials for the API server.
package dashboard
