// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// source is the folder of the page, from the module of the cluster tests.
	source = "../cmd/kubectl-traffic/dashboard/page"
	// checker is the file that the test of the page checks accessibility with.
	checker = "integration/testdata/dashboard/axe.min.js"
)

func main() {
	check := flag.Bool("check", false, "say whether the committed page is current, and write nothing")
	flag.Parse()
	if err := run(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("there is no npm to build the page with; install the package npm: %w", err)
	}
	folder, err := os.MkdirTemp("", "serin-page-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // only files of ours
	if err := install(ctx, folder); err != nil {
		return err
	}
	files, err := build(folder)
	if err != nil {
		return err
	}
	if check {
		return compare(files)
	}
	return write(files)
}

// install copies the sources and installs the packages of the lock file beside them.
func install(ctx context.Context, folder string) error {
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		return err
	}
	for _, args := range [][]string{{"npm", "ci"}, {"node_modules/.bin/tsc"}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// write replaces what was built before.
func write(files map[string][]byte) error {
	if err := os.RemoveAll(filepath.Join(source, "built")); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare says which files are not what would be built.
func compare(files map[string][]byte) error {
	var errs []error
	for name, content := range files {
		committed, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(committed, content) {
			errs = append(errs, fmt.Errorf("%s is not what its source says", name))
		}
	}
	there, err := filepath.Glob(filepath.Join(source, "built", "*"))
	errs = append(errs, err)
	for _, name := range there {
		if _, made := files[name]; !made {
			errs = append(errs, fmt.Errorf("%s is made of no source", name))
		}
	}
	if err := errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...); err != nil {
		return fmt.Errorf("%w\nrun make generate-page and commit the result", err)
	}
	return nil
}
