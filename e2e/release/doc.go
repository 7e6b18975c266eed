// SPDX-License-Identifier: Apache-2.0

// Package release makes what a release of Serin consists of, in one folder, and publishes it:
// the images of package publish, the chart, bases for Kustomize, and the plugin for kubectl.
// The same revision and toolchain give the same archives.
// [docs/release.md] says what there is and how to use it.
//
// [docs/release.md]: https://github.com/serin-dev/serin/blob/main/docs/release.md
package release
