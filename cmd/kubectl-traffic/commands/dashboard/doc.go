// SPDX-License-Identifier: Apache-2.0

// Package dashboard has the command that serves the page of the dashboard on this machine and
// opens the browser. What is served is of the package dashboard beside commands.
package dashboard
