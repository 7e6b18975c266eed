// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// titleAccepting is the process title of a worker that accepts connections. One
// that is told to finish changes its title before it stops accepting, in one go.
const titleAccepting = "nginx: worker process"

// procDir is where the proc file system is.
const procDir = "/proc"

// acceptingWorkers are the process ids of the workers of a master that accept
// connections. proc is where the proc file system is.
func acceptingWorkers(proc string, master int) (map[int]bool, error) {
	folders, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list nginx's workers: %w", err)
	}
	workers := map[int]bool{}
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		accepting, err := isAcceptingWorker(filepath.Join(proc, folder.Name()), master)
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if accepting {
			workers[pid] = true
		}
	}
	return workers, nil
}

func isAcceptingWorker(folder string, master int) (bool, error) {
	stat, err := readProc(filepath.Join(folder, "stat"))
	if err != nil || parseStat(stat).parent != master {
		return false, err
	}
	title, err := readProc(filepath.Join(folder, "cmdline"))
	return string(bytes.TrimRight(title, "\x00 ")) == titleAccepting, err
}

// readProc reads a file of a process; one that is gone reads as empty.
func readProc(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil, nil
	}
	return data, err
}

// procStat is what is of interest of /proc/<pid>/stat; zero when it can't be read.
type procStat struct {
	zombie          bool
	parent, session int
}

// parseStat reads /proc/<pid>/stat. The name of the process is in parentheses
// and may hold anything; state, parent, group and session follow the last one.
func parseStat(stat []byte) procStat {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return procStat{}
	}
	parent, perr := strconv.Atoi(string(fields[1]))
	session, serr := strconv.Atoi(string(fields[3]))
	if perr != nil || serr != nil {
		return procStat{}
	}
	return procStat{zombie: string(fields[0]) == "Z", parent: parent, session: session}
}

// replaced tells whether every accepting worker is new and there are as many as
// there should be.
func replaced(former, now map[int]bool, want int) bool {
	for pid := range now {
		if former[pid] {
			return false
		}
	}
	return len(now) >= want
}
