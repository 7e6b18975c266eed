// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/commands"
)

// generated matches the pages that this program writes, and no others.
const generated = "kubectl_traffic*.md"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: gendocs FOLDER")
	}
	pages, err := commands.Pages()
	if err != nil {
		return err
	}
	folder, err := os.OpenRoot(args[0])
	if err != nil {
		return err
	}
	return errors.Join(write(folder, pages), folder.Close())
}

func write(folder *os.Root, pages map[string]string) error {
	old, err := fs.Glob(folder.FS(), generated)
	if err != nil {
		return err
	}
	for _, page := range old {
		if err := folder.Remove(page); err != nil {
			return err
		}
	}
	for name, page := range pages {
		if err := folder.WriteFile(name, []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}
