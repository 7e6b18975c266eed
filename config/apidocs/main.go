// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: apidocs CRDS PAGES")
	}
	pages, err := pagesOf(args[0])
	if err != nil {
		return err
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(args[1], name), []byte(page), 0o644); err != nil { //nolint:gosec // everybody reads what Git holds
			return err
		}
	}
	return nil
}

// pagesOf are the pages of all CRDs in a folder, by their file names.
func pagesOf(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in %s", folder)
	}
	pages := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // the user names the folder
		if err != nil {
			return nil, err
		}
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		pages[strings.ToLower(crd.Spec.Names.Kind)+".md"] = render(crd)
	}
	return pages, nil
}
