// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// A List has the mutants of one package.
type List struct {
	// Package is the package's folder in the repository.
	Package string `json:"package"`
	// Tests are the arguments of the test binary, once for each of its runs. The
	// later runs are only for mutants that the earlier ones did not notice. Without
	// them, all tests run once.
	Tests [][]string `json:"tests,omitempty"`
	// Mutants are tried one at a time.
	Mutants []Mutant `json:"mutants"`
}

// A Mutant is a change that a test of its package must notice.
type Mutant struct {
	// Func is the function or Type.method whose body holds Before.
	Func string `json:"func"`
	// Before is the text to replace. It must be there exactly once.
	Before string `json:"before"`
	// After is what replaces it.
	After string `json:"after"`
	// Why says what would go wrong.
	Why string `json:"why"`
}

// Load reads all lists of a folder.
func Load(folder string) ([]List, error) {
	files, err := fs.Glob(os.DirFS(folder), "*.yaml")
	if err != nil {
		return nil, err
	}
	var lists []List
	for _, file := range files {
		list, err := load(filepath.Join(folder, file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf("%s has no lists", folder)
	}
	return lists, nil
}

func load(file string) (List, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return List{}, err
	}
	var list List
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		return List{}, err
	}
	return list, list.check()
}

// check finds what is missing in a list.
func (l List) check() error {
	if l.Package == "" || len(l.Mutants) == 0 {
		return errors.New("needs a package and mutants")
	}
	for i, m := range l.Mutants {
		if m.Func == "" || m.Before == "" || m.Before == m.After || m.Why == "" {
			return fmt.Errorf("mutant %d needs a func, a before, another after, and a why", i+1)
		}
	}
	return nil
}
