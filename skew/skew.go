// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"
	"regexp"
	"strconv"
)

// release is how the version of a release begins. The pseudo-version of a build from a checkout
// begins with v0.0.0, which was never released.
var release = regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})\.\d`)

// Part of Serin, and its version as the build or the cluster says it.
type Part struct{ Name, Version string }

// Refusal is why two parts don't go together, as a sentence without its end, or "" when they do.
func Refusal(a, b Part) string {
	majorA, minorA, knownA := parse(a.Version)
	majorB, minorB, knownB := parse(b.Version)
	if !knownA || !knownB || majorA == majorB && minorA-minorB <= 1 && minorB-minorA <= 1 {
		return ""
	}
	return fmt.Sprintf("%s is of version %s and %s of version %s, but they may be at most one minor version apart", a.Name, a.Version, b.Name, b.Version)
}

// parse reads major and minor version; false for what is not the version of a release.
func parse(version string) (major, minor int, known bool) {
	found := release.FindStringSubmatch(version)
	if found == nil {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(found[1])
	minor, err2 := strconv.Atoi(found[2])
	return major, minor, err1 == nil && err2 == nil && (major > 0 || minor > 0)
}
