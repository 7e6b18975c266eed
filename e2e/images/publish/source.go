// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Source is what Git knows of the files that are built.
type Source struct {
	Revision string
	// Committed is the time of the revision, which images and archives have too.
	Committed time.Time
	// Changed lists files that differ from the revision.
	Changed []string
}

// name is the revision, or what says that it is not quite that.
func (s Source) name() string {
	if len(s.Changed) > 0 {
		return s.Revision + "-changed"
	}
	return s.Revision
}

// ReadSource reads what Git knows of a checkout.
func ReadSource(ctx context.Context, root string) (Source, error) {
	revision, err := git(ctx, root, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return Source{}, fmt.Errorf("%w: a release is built from a clone, not from an archive of files", err)
	}
	hash, stamp, _ := strings.Cut(strings.TrimSpace(revision), " ")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("git names the time %q", stamp)
	}
	changed, err := git(ctx, root, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return Source{}, err
	}
	read := Source{Revision: hash, Committed: time.Unix(seconds, 0).UTC()}
	if changed = strings.TrimSpace(changed); changed != "" {
		read.Changed = strings.Split(changed, "\n")
	}
	return read, nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(output), nil
}
