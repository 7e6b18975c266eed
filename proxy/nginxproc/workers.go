// SPDX-License-Identifier: Apache-2.0

package nginxproc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/serin-dev/serin/traffic/nginx/conf"
)

const (
	// titleNginx begins the title of every process of a running nginx.
	titleNginx = "nginx: "
	// titleWorker is the title of a worker that accepts connections. One that is ordered to
	// finish changes its title before it stops accepting, in one go.
	titleWorker = "nginx: worker process"
)

// procDir is where the proc file system is.
const procDir = "/proc"

// Member is a process of a group.
type Member struct {
	PID int
	// Accepting is whether it is a worker that accepts connections.
	Accepting bool
}

// groupMembers are the processes of nginx in a group that have not ended. An nginx is a
// group, named by the id of its master: the workers stay in it when the master is
// killed, and the system gives the id to no other process before all of them have
// ended. proc is where the proc file system is.
func groupMembers(proc string, group int) ([]Member, error) {
	folders, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list nginx's workers: %w", err)
	}
	var members []Member
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		path := filepath.Join(proc, folder.Name())
		data, err := readProc(filepath.Join(path, "stat"))
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if stat := parseStat(data); stat.group != group || stat.zombie {
			continue
		}
		title, err := readProc(filepath.Join(path, "cmdline"))
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if name := processTitle(title); strings.HasPrefix(name, titleNginx) {
			members = append(members, Member{PID: pid, Accepting: name == titleWorker})
		}
	}
	return members, nil
}

// Accepting counts the workers that accept connections.
func Accepting(members []Member) int {
	n := 0
	for _, m := range members {
		if m.Accepting {
			n++
		}
	}
	return n
}

// processTitle is what a process calls itself.
func processTitle(cmdline []byte) string {
	return strings.TrimRight(string(cmdline), "\x00 ")
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
	zombie bool
	group  int
}

// parseStat reads /proc/<pid>/stat. The name of the process is in parentheses
// and may hold anything; state, parent and group follow the last one.
func parseStat(stat []byte) procStat {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return procStat{}
	}
	group, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return procStat{}
	}
	return procStat{zombie: string(fields[0]) == "Z" || string(fields[0]) == "X", group: group}
}

// Instances are the numbers of all nginx that have a folder, in ascending order.
func Instances(dir conf.Dir) ([]int, error) {
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		_, digits, _ := strings.Cut(e.Name(), "-")
		n, err := strconv.Atoi(digits)
		if err == nil && string(dir.Instance(n)) == filepath.Join(string(dir), e.Name()) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// LastInstance is the highest number in use, or 0.
func LastInstance(dir conf.Dir) (int, error) {
	numbers, err := Instances(dir)
	if err != nil || len(numbers) == 0 {
		return 0, err
	}
	return numbers[len(numbers)-1], nil
}
