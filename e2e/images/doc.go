// SPDX-License-Identifier: Apache-2.0

// Package images makes container images without a registry and without a
// container engine: each is a static Go binary, of this repository or built by package
// tools, over a layer of files from Debian
// packages where it needs them, in an archive that a container runtime can import.
//
// An image depends only on the content of its files: the same sources give the
// same digest, and what the cluster already has is not imported again. The table
// of images is in [Table]; the Dockerfiles for real builds stand beside this file and a
// test keeps them in step with it.
package images
