// SPDX-License-Identifier: Apache-2.0

// Package process starts and stops the programs of a local cluster.
//
// A program is started in one of two ways: [Start] leaves it running after the
// starter has ended and returns an [Identity] by which a later process finds it
// again; [StartChild] ties its life to the starter's.
//
// A process is never signalled by its number alone: numbers are used again.
package process
