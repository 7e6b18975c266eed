// SPDX-License-Identifier: Apache-2.0

// Package images makes container images without a container engine: each is a static Go
// binary, of this repository or built by package tools, over a layer of files from Debian
// packages where it needs them. For a local cluster they are archives that its container
// runtime imports; package release publishes them.
//
// An image depends only on the content of its files and, where it is published, on the
// revision that it names: the same sources and the same packages give the same digest, and
// what the cluster already has is not imported again. The table of images is in [Table].
package images
