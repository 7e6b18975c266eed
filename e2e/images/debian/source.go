// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/serin-dev/serin/e2e/tools"
)

// Release is the stable release of Debian that packages come from. Its security team patches it.
const Release = "trixie"

// Source is where packages come from.
type Source struct {
	// Folder holds the lists of packages and the packages. It is made when missing.
	Folder string
	// Architecture of the packages, as Go and Debian both call it.
	Architecture string
	// Newest has the lists brought up to date first; else lists that are there are used,
	// however old they are.
	Newest bool
	// Out is told what is downloaded.
	Out io.Writer
}

// Package is one package in a file.
type Package struct {
	Name, Version, Architecture string
	// URL is where the file came from, and SHA256 its digest in hexadecimal digits.
	URL, SHA256 string
	// Path of the file.
	Path string
}

// Fetch returns packages by their names. A file that is there already is not downloaded again.
func (s Source) Fetch(ctx context.Context, names ...string) ([]Package, error) {
	a, release, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	packages, err := s.locate(ctx, a, names)
	if err != nil {
		return nil, err
	}
	err = s.download(ctx, a, packages)
	if err != nil && !s.Newest { // most likely the lists are old, and what they name is gone
		if err = a.update(ctx, s.Out); err != nil {
			return nil, err
		}
		if packages, err = s.locate(ctx, a, names); err == nil {
			err = s.download(ctx, a, packages)
		}
	}
	return packages, err
}

// Candidates returns the packages that Fetch would, without their files.
func (s Source) Candidates(ctx context.Context, names ...string) ([]Package, error) {
	a, release, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.locate(ctx, a, names)
}

// open prepares the folder. One process uses it at a time.
func (s Source) open(ctx context.Context) (apt, func(), error) {
	a := apt{folder: filepath.Join(s.Folder, Release+"-"+s.Architecture), architecture: s.Architecture}
	release, err := tools.Lock(ctx, filepath.Join(a.folder, "lock"), func() {
		fmt.Fprintln(s.Out, "debian: another process is downloading packages, waiting")
	})
	if err != nil {
		return a, nil, err
	}
	if err = a.configure(ctx); err == nil && (s.Newest || !a.hasLists()) {
		err = a.update(ctx, s.Out)
	}
	if err != nil {
		release()
		return a, nil, err
	}
	return a, release, nil
}

// locate finds the files of packages. apt-get answers with a line for each:
// 'URL' NAME_VERSION_ARCHITECTURE.deb SIZE SHA256:DIGEST.
func (s Source) locate(ctx context.Context, a apt, names []string) ([]Package, error) {
	answer, err := a.run(ctx, "apt-get", append([]string{"download", "--print-uris"}, names...)...)
	if err != nil {
		return nil, fmt.Errorf("find packages of Debian %s: %w", Release, err)
	}
	found := map[string]Package{}
	for line := range strings.Lines(string(answer)) {
		if p, ok := parse(line); ok {
			p.Path = filepath.Join(a.folder, strings.Join([]string{p.Name, p.SHA256[:16], p.Architecture}, "_")+".deb")
			found[p.Name] = p
		}
	}
	packages := make([]Package, 0, len(names))
	for _, name := range names {
		p, ok := found[name]
		if !ok {
			return nil, fmt.Errorf("apt-get names no file for the package %s of Debian %s", name, Release)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

func parse(line string) (p Package, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return p, false
	}
	digest, isDigest := strings.CutPrefix(fields[3], "SHA256:")
	parts := strings.Split(strings.TrimSuffix(fields[1], ".deb"), "_")
	if !isDigest || len(digest) != 64 || len(parts) != 3 {
		return p, false
	}
	// A colon, of an epoch, is escaped in the name of a file.
	version := strings.ReplaceAll(parts[1], "%3a", ":")
	return Package{Name: parts[0], Version: version, Architecture: parts[2], URL: strings.Trim(fields[0], "'"), SHA256: digest}, true
}

// download fetches what is missing. apt-get names the files by their versions; here they
// are named by their content.
func (s Source) download(ctx context.Context, a apt, packages []Package) error {
	var missing []string
	for _, p := range packages {
		if _, err := os.Stat(p.Path); err != nil {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(s.Out, "debian: downloading %s for %s\n", strings.Join(missing, ", "), s.Architecture)
	scratch, err := os.MkdirTemp(a.folder, "download")
	if err != nil {
		return fmt.Errorf("make a folder to download packages to: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // what is left is only rubbish
	a.working = scratch
	if _, err := a.run(ctx, "apt-get", append([]string{"download"}, missing...)...); err != nil {
		return err
	}
	for _, p := range packages {
		if _, err := os.Stat(p.Path); err == nil {
			continue
		}
		if err := p.adopt(scratch); err != nil {
			return err
		}
	}
	return nil
}
