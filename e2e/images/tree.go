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
	"slices"
	"strings"

	"github.com/serin-dev/serin/e2e/tools"
)

// fetchPackages downloads Debian packages into their folder and returns their files.
// One that is there in the version that the machine's package lists name is not
// downloaded again.
func (b *Builder) fetchPackages(ctx context.Context, names []string) ([]string, error) {
	release, err := tools.Lock(ctx, filepath.Join(b.Packages, "lock"), func() {
		fmt.Fprintln(b.Out, "images: another process is downloading packages, waiting")
	})
	if err != nil {
		return nil, err
	}
	defer release()
	chosen, err := choosePackages(ctx, names)
	if err != nil {
		return nil, err
	}
	files, err := locatePackages(ctx, chosen)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(files))
	var missing []string
	for _, name := range chosen {
		path := filepath.Join(b.Packages, files[name])
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, name)
		}
		paths = append(paths, path)
	}
	if len(missing) == 0 {
		return paths, nil
	}
	fmt.Fprintf(b.Out, "images: downloading the Debian packages %s\n", strings.Join(missing, ", "))
	_, err = runIn(ctx, b.Packages, "apt-get", append([]string{"--option", "APT::Sandbox::User=", "download"}, missing...)...)
	return paths, err
}

// choosePackages takes of each group of alternatives the first that the machine's package lists know.
func choosePackages(ctx context.Context, names []string) ([]string, error) {
	chosen := make([]string, 0, len(names))
	for _, group := range names {
		alternatives := strings.Split(group, "|")
		if len(alternatives) == 1 {
			chosen = append(chosen, group)
			continue
		}
		known, err := runIn(ctx, "", "apt-cache", "pkgnames")
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(alternatives, func(name string) bool {
			return slices.Contains(strings.Fields(string(known)), name)
		})
		if i < 0 {
			return nil, fmt.Errorf("the package lists know none of %s: run `apt-get update` as root", strings.Join(alternatives, ", "))
		}
		chosen = append(chosen, alternatives[i])
	}
	return chosen, nil
}

// locatePackages asks apt for the names of the files that hold packages. It
// answers with a line for each: 'URL' NAME_VERSION_ARCHITECTURE.deb SIZE HASH.
func locatePackages(ctx context.Context, names []string) (map[string]string, error) {
	answer, err := runIn(ctx, "", "apt-get", append([]string{"download", "--print-uris"}, names...)...)
	if err != nil {
		return nil, fmt.Errorf("find Debian packages (run `apt-get update` as root if the lists of packages are missing): %w", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(answer)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			name, _, _ := strings.Cut(fields[1], "_")
			files[name] = fields[1]
		}
	}
	for _, name := range names {
		if files[name] == "" {
			return nil, fmt.Errorf("apt-get names no file for the package %s", name)
		}
	}
	return files, nil
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
		name := path.Join("/", header.Name) //nolint:gosec // a key of a map; nothing is written there
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
