// SPDX-License-Identifier: Apache-2.0

package build

import "runtime/debug"

// version is set by the linker in releases.
var version = ""

// Version is the release, or else what Go knows of the source.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
