// SPDX-License-Identifier: Apache-2.0

// Package migrate has the command that turns the objects of Argo Rollouts and of Flagger into
// those of Serin: it reads files or the cluster, and writes what package migration makes.
package migrate
