// SPDX-License-Identifier: Apache-2.0

// Package accesslog is the access log through which nginx tells the agent what it served:
// the format that nginx writes, and the reader of that.
//
//	Fields.Format ──► nginx.conf ──► nginx ──► the file ──► Tailer ──► Reader ──► Record
//
// The format stands here alone: its fields, their order, and how nginx buffers it. The file is in memory, has no end, and is read by one
// Tailer, which frees the memory of what was read. See docs/decisions/008.
package accesslog
