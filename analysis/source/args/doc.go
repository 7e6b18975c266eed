// SPDX-License-Identifier: Apache-2.0

// Package args puts the arguments of a template into texts, where {{args.NAME}} is
// written. It is pure. The caller says how a value is quoted at that place; there is no
// way to put one in unquoted.
package args
