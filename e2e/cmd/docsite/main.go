// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
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
	for name, content := range site {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // a site is for everybody
			return err
		}
	}
	return nil
}
