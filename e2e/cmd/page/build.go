// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// build makes the files of the page, by their paths.
func build(folder string) (map[string][]byte, error) {
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: folder, EntryPoints: []string{"src/app.tsx"}, Outdir: "built", Bundle: true, Metafile: true,
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
		Format: api.FormatESModule, Target: api.ES2022, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
	})
	var errs []error
	for _, m := range result.Errors {
		errs = append(errs, errors.New(strings.Join(api.FormatMessages([]api.Message{m}, api.FormatMessagesOptions{}), "")))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	files := map[string][]byte{}
	for _, out := range result.OutputFiles {
		files[filepath.Join(source, "built", filepath.Base(out.Path))] = out.Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		content, err := os.ReadFile(filepath.Join(folder, "src", name))
		if err != nil {
			return nil, err
		}
		files[filepath.Join(source, "built", name)] = content
	}
	var err error
	if files[filepath.Join(source, "built", "licences.txt")], err = licences(folder, result.Metafile); err != nil {
		return nil, err
	}
	files[checker], err = os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	return files, err
}

// licences has the licence of each package that is part of the page.
func licences(folder, metafile string) ([]byte, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	packages := map[string]bool{}
	for input := range meta.Inputs {
		if below, ok := strings.CutPrefix(input, "node_modules/"); ok {
			parts := strings.SplitN(below, "/", 3)
			if !strings.HasPrefix(below, "@") { // else the name has a scope
				parts = parts[:1]
			}
			packages[strings.Join(parts[:min(2, len(parts))], "/")] = true
		}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		content, err := os.ReadFile(filepath.Join(folder, "node_modules", name, "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s\n\n%s\n\n", name, strings.TrimSpace(string(content)))
	}
	return []byte(text.String()), nil
}
