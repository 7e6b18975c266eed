// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// fetchPackages downloads Debian packages into the cache and returns their files.
// One that is there in the version that the machine's package lists name is not
// downloaded again.
func (b *Builder) fetchPackages(ctx context.Context, names []string) ([]string, error) {
	folder := filepath.Join(b.Cache, "debian")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of packages: %w", err)
	}
	files := make([]string, 0, len(names))
	for _, alternatives := range names {
		file, err := b.fetchPackage(ctx, folder, strings.Split(alternatives, "|"))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// fetchPackage downloads the first of the alternatives that exists.
func (b *Builder) fetchPackage(ctx context.Context, folder string, alternatives []string) (string, error) {
	var errs []error
	for _, name := range alternatives {
		file, err := locatePackage(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		target := filepath.Join(folder, file)
		if _, err := os.Stat(target); err == nil {
			return target, nil
		}
		fmt.Fprintf(b.Out, "images: downloading the Debian package %s\n", name)
		if _, err := runIn(ctx, folder, "apt-get", "--option", "APT::Sandbox::User=", "download", name); err != nil {
			return "", fmt.Errorf("download the Debian package %s: %w", name, err)
		}
		return target, nil
	}
	return "", fmt.Errorf("find the Debian package %s (run `apt-get update` as root if its lists are missing): %w",
		strings.Join(alternatives, " or "), errors.Join(errs...))
}

// locatePackage asks apt for the name of the file that holds a package. The
// answer is one line: 'URL' FILE SIZE HASH.
func locatePackage(ctx context.Context, name string) (string, error) {
	answer, err := runIn(ctx, "", "apt-get", "download", "--print-uris", name)
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(answer))
	if len(fields) < 2 {
		return "", fmt.Errorf("apt-get names no file for the package %s", name)
	}
	return fields[1], nil
}

// runIn runs a command in a folder and returns what it prints.
func runIn(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "LC_ALL=C")
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return output, nil
}

// tree is what packages would install: files by absolute path.
type tree map[string]file

// unpack reads packages into one tree.
func unpack(ctx context.Context, packages []string) (tree, error) {
	all := tree{}
	for _, name := range packages {
		content, err := runIn(ctx, "", "dpkg-deb", "--fsys-tarfile", name)
		if err != nil {
			return nil, err
		}
		if err := all.add(bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("read the package %s: %w", filepath.Base(name), err)
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
		name := path.Join("/", header.Name)
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
