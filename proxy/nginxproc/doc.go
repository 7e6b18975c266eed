// SPDX-License-Identifier: Apache-2.0

// Package nginxproc runs nginx: it starts a second one next to the first, adopts those that another
// agent started, has them finish, and passes their error log on.
//
// An nginx is a master process and its workers in a group of their own, with a folder of
// its own. It outlives its agent and its master. See docs/decisions/031.
package nginxproc
