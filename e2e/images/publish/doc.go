// SPDX-License-Identifier: Apache-2.0

// Package publish makes images for several architectures, with an SBOM of each and the
// provenance of all, and pushes them to a registry or writes them into a folder. It needs Go,
// apt-get and no container engine.
//
// The same revision, toolchain and packages of Debian give the same images.
package publish
