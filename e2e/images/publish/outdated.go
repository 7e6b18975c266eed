// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/images/debian"
	"github.com/serin-dev/serin/e2e/images/publish/sbom"
	"github.com/serin-dev/serin/e2e/tools"
)

// Outdated fails when Debian has newer packages than those in the images of the registry.
func Outdated(ctx context.Context, options Options) error {
	checkout, err := tools.Locate()
	if err != nil {
		return err
	}
	folder := images.NewBuilder(checkout, options.Out).Packages
	var old []string
	for _, image := range options.Images {
		held, err := options.Registry.heldPackages(ctx, repository(image), options.Version)
		if err != nil {
			return err
		}
		for architecture, packages := range held {
			source := debian.Source{Folder: folder, Architecture: architecture, Newest: true, Out: options.Out}
			newer, err := compare(ctx, source, packages)
			if err != nil {
				return err
			}
			for _, line := range newer {
				old = append(old, image.Title+", "+line)
			}
		}
	}
	if len(old) > 0 {
		return fmt.Errorf("the images %s hold packages that Debian has replaced; publish new ones:\n%s", options.Version, strings.Join(old, "\n"))
	}
	return nil
}

// compare says which packages are replaced by newer ones.
func compare(ctx context.Context, source debian.Source, held []debian.Package) ([]string, error) {
	names := make([]string, 0, len(held))
	for _, p := range held {
		names = append(names, p.Name)
	}
	newest, err := source.Candidates(ctx, names...)
	return replaced(source.Architecture, held, newest), err
}

// replaced compares packages with the newest ones, in the same order.
func replaced(architecture string, held, newest []debian.Package) []string {
	var old []string
	for i, p := range newest {
		if p.Version != held[i].Version {
			old = append(old, fmt.Sprintf("%s: %s has %s, Debian has %s", architecture, p.Name, held[i].Version, p.Version))
		}
	}
	return old
}

// heldPackages reads the SBOMs of an image: its packages of Debian, by architecture.
func (r Registry) heldPackages(ctx context.Context, below, tag string) (map[string][]debian.Package, error) {
	repository, err := r.repository(below)
	if err != nil {
		return nil, err
	}
	index, err := remote.Index(repository.Tag(tag), r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("read the image %s:%s: %w", repository, tag, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	held := map[string][]debian.Package{}
	for _, m := range manifest.Manifests {
		text, err := r.Document(ctx, repository.Digest(m.Digest.String()), sbom.MediaType)
		if err != nil {
			return nil, err
		}
		packages, err := sbom.Packages(text)
		if err != nil {
			return nil, err
		}
		if len(packages) > 0 {
			held[m.Platform.Architecture] = packages
		}
	}
	return held, nil
}

// Document reads a document of a kind about an image.
func (r Registry) Document(ctx context.Context, about name.Digest, kind string) ([]byte, error) {
	referrers, err := remote.Referrers(about, r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("list what refers to %s: %w", about, err)
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range list.Manifests {
		document, err := remote.Image(about.Context().Digest(m.Digest.String()), r.options(ctx)...)
		if err != nil {
			return nil, fmt.Errorf("read what refers to %s: %w", about, err)
		}
		if text, err := textOf(document, kind); text != nil || err != nil {
			return text, err
		}
	}
	return nil, fmt.Errorf("no document %s refers to %s", kind, about)
}

// textOf reads the text of a document, nil if it is of another kind. Not every registry says
// in its list of referrers of which kind they are.
func textOf(document v1.Image, kind string) ([]byte, error) {
	layers, err := document.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		if got, err := layer.MediaType(); err != nil || string(got) != kind {
			continue
		}
		content, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		defer content.Close()
		return io.ReadAll(content)
	}
	return nil, nil
}
