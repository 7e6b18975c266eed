// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Omission is a package of another module that a tool is built without, along with
// everything that only this package imports.
type Omission struct {
	// Module is the module that has the package, in the version of the tool's go.mod.
	Module string
	// Folder is the folder of the package in the module. What is below it is left out too.
	Folder string
	// Substitute is the file beside the tool's go.mod that is the package instead.
	Substitute string
}

// without writes into scratch a copy of the module that lacks what is omitted, and a go.mod
// for the tool that takes the copy. It returns the path of this go.mod.
func (b *Builder) without(ctx context.Context, tool Tool, scratch string) (string, error) {
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o750)); err != nil {
		return "", err
	}
	source, omission := filepath.Join(b.Source, tool.Name), tool.Without
	module, err := b.download(ctx, tool, omission.Module)
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(scratch, "module")
	folder := filepath.Join(replacement, filepath.FromSlash(omission.Folder))
	if !exists(filepath.Join(module, filepath.FromSlash(omission.Folder))) {
		return "", fmt.Errorf("%s has no folder %s", module, omission.Folder)
	}
	if err := errors.Join(os.CopyFS(replacement, os.DirFS(module)), os.RemoveAll(folder), os.MkdirAll(folder, 0o750)); err != nil {
		return "", err
	}
	requirements := filepath.Join(scratch, "go.mod")
	if err := errors.Join(
		copyFile(filepath.Join(source, omission.Substitute), filepath.Join(folder, omission.Substitute)),
		copyFile(filepath.Join(source, "go.sum"), filepath.Join(scratch, "go.sum")),
		copyFile(filepath.Join(source, "go.mod"), requirements),
	); err != nil {
		return "", err
	}
	edit := b.goCommand(ctx, tool, []string{"mod", "edit", "-replace", omission.Module + "=" + replacement, requirements})
	if printed, err := edit.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, printed)
	}
	return requirements, nil
}

// download returns the folder of a module that the tool requires. Asked for a package of it,
// go list would download the modules of all that the package imports, which is left out.
func (b *Builder) download(ctx context.Context, tool Tool, module string) (string, error) {
	command := b.goCommand(ctx, tool, []string{"mod", "download", "-json", module})
	var problems bytes.Buffer
	command.Stderr = &problems
	printed, err := command.Output()
	var found struct{ Dir, Error string }
	if unreadable := json.Unmarshal(printed, &found); err == nil {
		err = unreadable
	}
	if err != nil {
		return "", fmt.Errorf("download %s: %w\n%s%s", module, err, found.Error, problems.String())
	}
	return found.Dir, nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600) //nolint:gosec // a path of the builder's own
}
