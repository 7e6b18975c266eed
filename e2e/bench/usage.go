// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc, the same on every Linux.
const clockTick = time.Second / 100

// usage reads what the kernel says of a process. It needs Linux.
type usage struct{ pid int }

func (u usage) read(file string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", u.pid, file))
	if err != nil {
		return "", fmt.Errorf("read what the operator used (this needs Linux): %w", err)
	}
	return string(text), nil
}

// cpu is the processor time that was used so far, in user and system mode.
func (u usage) cpu() (time.Duration, error) {
	text, err := u.read("stat")
	if err != nil {
		return 0, err
	}
	return parseCPU(text)
}

// parseCPU takes fields 14 and 15, counted from 1. Field 2 is a name in
// parentheses that may contain anything.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat has only %d fields", len(fields))
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	if errUser != nil || errSystem != nil {
		return 0, fmt.Errorf("/proc/PID/stat has the times %q and %q", fields[11], fields[12])
	}
	return time.Duration(user+system) * clockTick, nil
}

// memory is the resident memory now and at its highest since [usage.resetPeak],
// in bytes.
func (u usage) memory() (now, peak int64, err error) {
	text, err := u.read("status")
	if err != nil {
		return 0, 0, err
	}
	if now, err = parseMemory(text, "VmRSS:"); err != nil {
		return 0, 0, err
	}
	peak, err = parseMemory(text, "VmHWM:")
	return now, peak, err
}

// ownMemory is the resident memory without the pages of files, in bytes.
func (u usage) ownMemory() (int64, error) {
	text, err := u.read("status")
	if err != nil {
		return 0, err
	}
	return parseMemory(text, "RssAnon:")
}

func parseMemory(status, key string) (int64, error) {
	for line := range strings.Lines(status) {
		value, found := strings.CutPrefix(line, key)
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/status: %s: %w", key, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("/proc/PID/status has no %s", key)
}

// resetPeak makes the peak begin anew.
func (u usage) resetPeak() error {
	const highWaterMark = "5" // see proc(5), clear_refs
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", u.pid), []byte(highWaterMark), 0o600); err != nil {
		return fmt.Errorf("reset the peak of the operator's memory: %w", err)
	}
	return nil
}
