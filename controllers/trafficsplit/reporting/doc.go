// SPDX-License-Identifier: Apache-2.0

// Package reporting makes what users read of a plan.Report: the status, the events of its
// transitions, and whether a status may be written a moment later. It is pure.
package reporting
