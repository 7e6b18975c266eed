// SPDX-License-Identifier: Apache-2.0

// Package reports reads from each proxy what it serves. A reading counts for one pod, by its
// UID, and for one thing that is to be served: one that began before that changed says
// nothing about it. It decides nothing, and writes nothing.
//
//	what is to be served changes ──> each proxy is read now, and again and again
//	it serves it                 ──> each proxy is read from time to time
//	a proxy can't be read        ──> it is not known what it serves
package reports
