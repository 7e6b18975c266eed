// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// epoch is the time of every file: the same content gives the same digest.
var epoch = time.Unix(0, 0).UTC()

// file is one entry of a layer. The folders above it are made with it.
type file struct {
	path    string // absolute
	mode    int64
	content []byte
	link    string // target of a symbolic link
	folder  bool
}

// makeLayer packs files into a layer, in the order of their paths and owned by
// root: a process of another user cannot change them. A layer that only ever goes to a
// runtime on this machine need not be compressed.
func makeLayer(files []file, compress bool) (v1.Layer, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, entry := range withFolders(files) {
		if err := archive.WriteHeader(entry.header()); err != nil {
			return nil, fmt.Errorf("pack %s: %w", entry.path, err)
		}
		if _, err := archive.Write(entry.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", entry.path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	if !compress {
		return static.NewLayer(content.Bytes(), types.OCIUncompressedLayer), nil
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func (f file) header() *tar.Header {
	header := &tar.Header{
		Name: strings.TrimPrefix(f.path, "/"), Mode: f.mode, ModTime: epoch,
		Typeflag: tar.TypeReg, Size: int64(len(f.content)),
	}
	switch {
	case f.folder:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case f.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
	}
	return header
}

// withFolders adds the folders above each file and sorts everything: a folder
// comes before what is in it. Of two entries with one path the first counts.
func withFolders(files []file) []file {
	seen := map[string]bool{"/": true}
	var all []file
	for _, entry := range files {
		if !seen[entry.path] {
			all = append(all, entry)
		}
		seen[entry.path] = true
	}
	for _, entry := range files {
		for folder := path.Dir(entry.path); !seen[folder]; folder = path.Dir(folder) {
			seen[folder] = true
			all = append(all, file{path: folder, mode: 0o755, folder: true})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	return all
}

// identityFiles name the unprivileged user and give it a place for what it
// writes, for images whose root is not read-only.
func identityFiles() []file {
	return []file{
		{path: "/etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%[1]d:%[1]d:nonroot:/:/sbin/nologin\n", Unprivileged)},
		{path: "/etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", Unprivileged)},
		{path: "/tmp", mode: 0o1777, folder: true},
	}
}
