// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/serin-dev/serin/e2e/images/debian"
)

// tree is what packages would install: files by absolute path.
type tree map[string]file

// mergedFolders are the links by which Debian finds the loader and the libraries of
// packages, which are all below /usr.
var mergedFolders = []file{
	{path: "/lib", mode: 0o777, link: "usr/lib"},
	{path: "/lib64", mode: 0o777, link: "usr/lib64"},
}

// merged is the path that a path leads to by the links of mergedFolders.
func merged(name string) string {
	for _, link := range mergedFolders {
		if below, inside := strings.CutPrefix(name, link.path+"/"); inside {
			return path.Join("/", link.link, below)
		}
	}
	return name
}

// unpack reads packages into one tree.
func unpack(ctx context.Context, packages []debian.Package) (tree, error) {
	all := tree{}
	for _, p := range packages {
		content, err := p.Files(ctx)
		if err != nil {
			return nil, err
		}
		if err := all.add(bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("read the package %s: %w", p.Name, err)
		}
	}
	return all, nil
}

// add reads the files and symbolic links of a tar archive.
func (t tree) add(archive io.Reader) error {
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := merged(path.Join("/", header.Name)) //nolint:gosec // a key of a map; nothing is written there
		switch header.Typeflag {
		case tar.TypeSymlink:
			t[name] = file{path: name, mode: 0o777, link: header.Linkname}
		case tar.TypeReg:
			content, err := io.ReadAll(reader)
			if err != nil {
				return err
			}
			t[name] = file{path: name, mode: header.Mode & 0o755, content: content}
		}
	}
}
