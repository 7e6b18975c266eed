// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/serin-dev/serin/e2e/docsite"
	"github.com/serin-dev/serin/e2e/images"
)

func main() {
	folder := filepath.Join("..", "dist", "docs")
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	if err := run(folder); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println("open", filepath.Join(folder, "index.html"))
}

func run(folder string) error {
	site, err := docsite.Make(os.DirFS(".."), images.Homepage)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the folder that the user names
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is lost
	for name, content := range site {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
