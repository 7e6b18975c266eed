// SPDX-License-Identifier: Apache-2.0

// Package sbom writes down what an image consists of, as SPDX 2.3: the modules that Go wrote
// into its program, the toolchain, and the packages of Debian that files come from. It is
// pure; the same image gives the same document.
package sbom
