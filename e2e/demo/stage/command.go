// SPDX-License-Identifier: Apache-2.0

package stage

import "strings"

// commandLine is a command as a person would type it.
func commandLine(program string, args []string) string {
	return "$ " + program + " " + strings.Join(args, " ")
}
