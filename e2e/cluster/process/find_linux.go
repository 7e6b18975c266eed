// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FindByEnv finds the processes that were started with the variable ("NAME=value")
// in their environment, whoever keeps a record of them; only those of the named
// program unless program is empty.
func FindByEnv(variable, program string) ([]Identity, error) {
	return find(func(pid int) bool {
		if !slices.Contains(readStrings(pid, "environ"), variable) {
			return false
		}
		return program == "" || filepath.Base(readStrings(pid, "cmdline")[0]) == program
	})
}

// FindByMount finds the processes in whose mount table a line satisfies match.
func FindByMount(match func(line string) bool) ([]Identity, error) {
	return find(func(pid int) bool {
		table, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
		return err == nil && slices.ContainsFunc(strings.Split(string(table), "\n"), match)
	})
}

// find identifies the processes that satisfy match, except this one. One that
// ends meanwhile is left out.
func find(match func(pid int) bool) ([]Identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var found []Identity
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		identity, err := Identify(pid) // before match, which reads the same process or a later one
		if err == nil && match(pid) && identity.Alive() {
			found = append(found, identity)
		}
	}
	return found, nil
}

// readStrings reads a list that the kernel keeps of a process. It holds one
// empty string when the process has ended or is not ours to read.
func readStrings(pid int, list string) []string {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), list))
	if err != nil {
		return []string{""}
	}
	return strings.Split(string(content), "\x00")
}
