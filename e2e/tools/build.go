// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/utils/clock"
)

// Builder builds tools into a cache.
type Builder struct {
	// Source is the folder of this package: it holds one folder per tool.
	Source string
	// Cache is the folder that builds are kept in. It is made when missing.
	Cache string
	// Out is told what is being built, how far it is and how long it has taken.
	Out io.Writer
	// Clock measures how long it takes.
	Clock clock.WithTicker
}

// Set is a set of built programs.
type Set struct {
	paths map[string]string
}

// Path is the absolute path of a program, or "" when it is not in the set.
func (s Set) Path(program string) string { return s.paths[program] }

// Folder is a folder that holds every program of the tool that program belongs to.
func (s Set) Folder(program string) string { return filepath.Dir(s.paths[program]) }

// With is the set with some programs taken from another folder.
func (s Set) With(folder string, programs ...string) Set {
	paths := maps.Clone(s.paths)
	for _, program := range programs {
		paths[program] = filepath.Join(folder, program)
	}
	return Set{paths}
}

// Build makes sure that the tools are in the cache and returns their programs.
// What is already there is not built again.
func (b *Builder) Build(ctx context.Context, tools ...Tool) (Set, error) {
	toolchain, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return Set{}, fmt.Errorf("ask the go command for its version (is Go installed and in PATH?): %w", err)
	}
	set := Set{paths: map[string]string{}}
	for _, tool := range tools {
		folder, err := b.build(ctx, tool, strings.TrimSpace(string(toolchain)))
		if err != nil {
			return Set{}, err
		}
		for _, program := range tool.Programs {
			set.paths[program] = filepath.Join(folder, program)
		}
	}
	return set, nil
}

// build returns the folder of the cache that holds the programs of one tool.
func (b *Builder) build(ctx context.Context, tool Tool, toolchain string) (string, error) {
	key, err := Key(tool, os.DirFS(filepath.Join(b.Source, tool.Name)), toolchain)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(b.Cache, tool.Name+"-"+key)
	if exists(folder) {
		return folder, nil
	}
	release, err := Lock(ctx, filepath.Join(b.Cache, tool.Name+".lock"), func() {
		fmt.Fprintf(b.Out, "%s: another process is building it, waiting\n", tool.Name)
	})
	if err != nil {
		return "", err
	}
	defer release()
	if exists(folder) { // built by another process while this one waited
		return folder, nil
	}
	return folder, b.compile(ctx, tool, folder)
}

// compile fills a scratch folder and renames it, so that an interrupted build
// never looks like a complete one. The caller holds the lock of the tool.
func (b *Builder) compile(ctx context.Context, tool Tool, folder string) error {
	scratch, source := folder+".partial", folder+".source"
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o750)); err != nil {
		return fmt.Errorf("prepare the folder to build %s in: %w", tool.Name, err)
	}
	if err := errors.Join(b.runGo(ctx, tool, source, filepath.Join(scratch, tool.Programs[0])), os.RemoveAll(source)); err != nil {
		return errors.Join(err, os.RemoveAll(scratch))
	}
	for _, program := range tool.Programs[1:] {
		if err := os.Symlink(tool.Programs[0], filepath.Join(scratch, program)); err != nil {
			return fmt.Errorf("name the programs of %s: %w", tool.Name, err)
		}
	}
	if err := os.Rename(scratch, folder); err != nil {
		return fmt.Errorf("put %s in the cache: %w", tool.Name, err)
	}
	return nil
}

// runGo compiles the tool into output and reports how far it is. The folder source is
// for what it changes of the source.
func (b *Builder) runGo(ctx context.Context, tool Tool, source, output string) error {
	progress := newProgress(tool.Name, b.Out, b.Clock)
	defer progress.stop()
	flags := tool.flags()
	if tool.Without != nil {
		requirements, err := b.without(ctx, tool, source)
		if err != nil {
			return fmt.Errorf("leave %s of %s out of %s: %w", tool.Without.Folder, tool.Without.Module, tool.Name, err)
		}
		flags = append([]string{"-modfile", requirements}, flags...)
	}
	total, err := b.countPackages(ctx, tool, flags, progress)
	if err != nil {
		return err
	}
	progress.compiling(total)
	command := b.goCommand(ctx, tool, append([]string{"build", "-v", "-o", output}, flags...))
	command.Stdout, command.Stderr = progress, progress
	if err := command.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", tool.Name, err, progress.problems())
	}
	progress.done()
	return nil
}

// countPackages counts what has to be compiled. It downloads the modules that
// are missing, which the go command reports on its standard error.
func (b *Builder) countPackages(ctx context.Context, tool Tool, flags []string, progress *progress) (int, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, flags...)
	command := b.goCommand(ctx, tool, args)
	command.Stderr = progress
	stale, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("list the packages of %s: %w\n%s", tool.Name, err, progress.problems())
	}
	return len(strings.Fields(string(stale))), nil
}

// goCommand runs the go command in the module of the tool. Static binaries run
// on every Linux, and a workspace of the caller must not change what is built.
func (b *Builder) goCommand(ctx context.Context, tool Tool, args []string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = filepath.Join(b.Source, tool.Name)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	return command
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
