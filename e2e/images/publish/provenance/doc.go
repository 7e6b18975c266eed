// SPDX-License-Identifier: Apache-2.0

// Package provenance says how images were made, as an in-toto statement with a predicate of
// SLSA: from which revision, by which toolchain, with which packages of Debian, and where.
// It is pure.
package provenance
