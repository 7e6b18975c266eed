// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// epoch is before the time of every file.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// hashDigits of a file's hash make its time: 16 million seconds, half a year.
const hashDigits = 6

// SetFileTimes gives each file that git has as it is a time that follows from its
// content. Go keeps the result of a test by the sizes and times of the files that the
// test reads; in a fresh clone each file is new, and every such test would run again.
func SetFileTimes(ctx context.Context, root string) error {
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil // unpacked from an archive, whose times stay
	}
	index, err := git(ctx, root, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	if _, err := git(ctx, root, "update-index", "-q", "--really-refresh"); err != nil {
		return err
	}
	changed, err := git(ctx, root, "diff-files", "--name-only", "-z")
	if err != nil {
		return err
	}
	times, err := fileTimes(index, changed)
	if err != nil {
		return err
	}
	for name, when := range times {
		if err := setTime(filepath.Join(root, filepath.FromSlash(name)), when); err != nil {
			return err
		}
	}
	_, err = git(ctx, root, "update-index", "-q", "--refresh") // else the next git status reads every file
	return err
}

// fileTimes reads the index as git ls-files --stage prints it. Folders have the same time
// everywhere: their names are what matters. Files that were changed keep theirs.
func fileTimes(index, changed string) (map[string]time.Time, error) {
	skip := map[string]bool{}
	for name := range strings.SplitSeq(changed, "\x00") {
		skip[name] = true
	}
	times := map[string]time.Time{}
	for line := range strings.SplitSeq(strings.TrimSuffix(index, "\x00"), "\x00") {
		facts, name, found := strings.Cut(line, "\t")
		fields := strings.Fields(facts)
		if !found || len(fields) != 3 || len(fields[1]) < hashDigits {
			return nil, fmt.Errorf("git ls-files printed %q", line)
		}
		seconds, err := strconv.ParseInt(fields[1][:hashDigits], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("git ls-files printed %q: %w", line, err)
		}
		if !skip[name] {
			times[name] = epoch.Add(time.Duration(seconds) * time.Second)
		}
		for folder := filepath.Dir(name); folder != "."; folder = filepath.Dir(folder) {
			times[folder] = epoch
		}
	}
	return times, nil
}

func setTime(path string, when time.Time) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (info.ModTime().Equal(when) || info.Mode()&fs.ModeSymlink != 0) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chtimes(path, when, when)
}

// git runs git in the repository. update-index ends with 1 where files were changed.
func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = root
	output, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && args[0] == "update-index" {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(output), nil
}
