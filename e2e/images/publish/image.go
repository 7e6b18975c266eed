// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/images/debian"
	"github.com/serin-dev/serin/e2e/images/publish/provenance"
	"github.com/serin-dev/serin/e2e/images/publish/sbom"
)

// Image is an image for all architectures, with the documents about it.
type Image struct {
	// Repository is its name below a registry, such as "serin-dev/serin".
	Repository string
	Tag        string
	Index      v1.ImageIndex
	// Documents refer to the index and to the images in it.
	Documents []v1.Image
}

// repository is the name of an image below its registry, without the tag.
func repository(image images.Image) string {
	_, below, _ := strings.Cut(image.Reference, "/")
	name, _, _ := strings.Cut(below, ":")
	return name
}

// tag is the version of Serin. Images of the demo have tags of their own.
func (p *Publisher) tag(image images.Image) string {
	if image.Version != "" {
		return image.Version
	}
	return p.Options.Version
}

// makeImage builds an image for each architecture and what is to know about it.
func (p *Publisher) makeImage(ctx context.Context, image images.Image) (Image, error) {
	out := Image{Repository: repository(image), Tag: p.tag(image)}
	var additions []mutate.IndexAddendum
	var digests []string
	var packages []debian.Package
	for _, architecture := range p.Options.Architectures {
		made, err := p.builder(architecture).Make(ctx, image)
		if err != nil {
			return out, fmt.Errorf("build the image %s for %s: %w", out.Repository, architecture, err)
		}
		digest, document, err := p.describe(image, architecture, made)
		if err != nil {
			return out, err
		}
		additions = append(additions, mutate.IndexAddendum{
			Add: made.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
		out.Documents = append(out.Documents, document)
		digests, packages = append(digests, digest), append(packages, made.Packages...)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), additions...)
	out.Index = mutate.Annotations(index, p.stamp().Annotations(image)).(v1.ImageIndex) //nolint:forcetypeassert // as its documentation says
	statement, err := p.prove(out, digests, packages)
	out.Documents = append(out.Documents, statement)
	return out, err
}

// describe makes the SBOM of the image for one architecture.
func (p *Publisher) describe(image images.Image, architecture string, made images.Made) (string, v1.Image, error) {
	var programs []*debug.BuildInfo
	for _, built := range made.Programs {
		program, err := buildinfo.ReadFile(built)
		if err != nil {
			return "", nil, fmt.Errorf("read what %s was built from: %w", built, err)
		}
		programs = append(programs, program)
	}
	subject, err := descriptor(made.Image)
	if err != nil {
		return "", nil, err
	}
	text, err := sbom.Render(sbom.Image{
		Name: path.Base(repository(image)), Version: p.Options.Version, Digest: subject.Digest.String(), Architecture: architecture,
		Created: p.Source.Committed, Programs: programs, Packages: made.Packages,
	})
	if err != nil {
		return "", nil, err
	}
	document, err := makeDocument(subject, sbom.MediaType, text, p.Source.Committed)
	return subject.Digest.String(), document, err
}

// prove makes the provenance of the image.
func (p *Publisher) prove(image Image, digests []string, packages []debian.Package) (v1.Image, error) {
	subject, err := descriptor(image.Index)
	if err != nil {
		return nil, err
	}
	text, err := provenance.Render(provenance.Build{
		Image: image.Repository, Digests: append([]string{subject.Digest.String()}, digests...),
		Version: p.Options.Version, Architectures: p.Options.Architectures,
		Repository: images.Homepage, Revision: p.Source.Revision, Changed: len(p.Source.Changed) > 0, Toolchain: runtime.Version(), Packages: packages,
		Builder: p.Options.Builder, Invocation: p.Options.Invocation,
	})
	if err != nil {
		return nil, err
	}
	return makeDocument(subject, provenance.MediaType, text, p.Source.Committed)
}
