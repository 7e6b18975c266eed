// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 10

// withLibraries takes programs out of the tree, with every library that they
// load at their start, the loader, and the symbolic links that lead to them.
func (t tree) withLibraries(programs []string) ([]file, error) {
	var files []file
	taken := map[string]bool{}
	for pending := programs; len(pending) > 0; pending = pending[1:] {
		if taken[pending[0]] {
			continue
		}
		taken[pending[0]] = true
		chain, err := t.follow(pending[0])
		if err != nil {
			return nil, err
		}
		files = append(files, chain...)
		needed, err := t.needs(chain[len(chain)-1])
		if err != nil {
			return nil, err
		}
		pending = append(pending, needed...)
	}
	return files, nil
}

// follow returns the symbolic links that a path leads through and the file at its end.
func (t tree) follow(name string) ([]file, error) {
	var chain []file
	for range maxLinks {
		name = merged(name)
		entry, ok := t[name]
		if !ok {
			return nil, fmt.Errorf("%s is in none of the packages", name)
		}
		chain = append(chain, entry)
		if entry.link == "" {
			return chain, nil
		}
		name = entry.link
		if !path.IsAbs(name) {
			name = path.Join(path.Dir(entry.path), name)
		}
	}
	return nil, fmt.Errorf("%s leads through more than %d symbolic links", chain[0].path, maxLinks)
}

// needs lists the paths of the libraries and of the loader that a binary names.
func (t tree) needs(binary file) ([]string, error) {
	parsed, err := elf.NewFile(bytes.NewReader(binary.content))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", binary.path, err)
	}
	libraries, err := parsed.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read what %s needs: %w", binary.path, err)
	}
	var paths []string
	for _, library := range libraries {
		found := t.find(library)
		if found == "" {
			return nil, fmt.Errorf("%s needs %s, which is in none of the packages: add the one that holds it", binary.path, library)
		}
		paths = append(paths, found)
	}
	if loader := parsed.Section(".interp"); loader != nil {
		content, err := loader.Data()
		if err != nil {
			return nil, fmt.Errorf("read the loader of %s: %w", binary.path, err)
		}
		paths = append(paths, strings.TrimRight(string(content), "\x00"))
	}
	return paths, nil
}

// find returns the path of a library in a folder that the loader searches, or "".
func (t tree) find(library string) string {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		folder := path.Dir(name)
		if path.Base(name) == library && strings.HasPrefix(folder, "/usr/lib/") && strings.HasSuffix(folder, "-linux-gnu") {
			return name
		}
	}
	return ""
}
