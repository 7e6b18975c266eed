// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Places of fields in /proc/PID/stat after the name of the program, see proc_pid_stat(5).
const (
	stateField   = 0  // field 3 of the file
	startedField = 19 // field 22 of the file
)

// status is what the kernel says of a process.
type status struct {
	started uint64 // clock ticks since the boot
	ended   bool
}

func readStatus(pid int) (status, error) {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return status{}, fmt.Errorf("read the status of process %d: %w", pid, err)
	}
	return parseStatus(string(content))
}

// parseStatus reads the text of /proc/PID/stat. The name of the program is in
// parentheses and may itself hold parentheses and spaces: the last one ends it.
func parseStatus(text string) (status, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= startedField {
		return status{}, fmt.Errorf("the status of a process has %d fields after its name, want more than %d", len(fields), startedField)
	}
	started, err := strconv.ParseUint(fields[startedField], 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("read when a process started: %w", err)
	}
	ended := fields[stateField] == "Z" || fields[stateField] == "X"
	return status{started: started, ended: ended}, nil
}
