// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/serin-dev/serin/e2e/tools"
)

// Builder builds images into archives.
type Builder struct {
	// Checkout is the repository, whose programs are built.
	Checkout tools.Checkout
	// Cache is the folder for archives. It is made when missing.
	Cache string
	// Packages is the folder for Debian packages, which all checkouts share. It is made when missing.
	Packages string
	// Tools builds the programs of others.
	Tools *tools.Builder
	// Out is told what is being built.
	Out io.Writer
}

// NewBuilder builds the images of a checkout.
func NewBuilder(checkout tools.Checkout, out io.Writer) *Builder {
	return &Builder{
		Checkout: checkout, Cache: filepath.Join(checkout.State, "images"), Packages: filepath.Join(checkout.Cache, "debian"),
		Tools: checkout.Builder(out), Out: out,
	}
}

// Archive is an image in a file.
type Archive struct {
	Reference string
	// Digest is that of the image's manifest, as "sha256:…".
	Digest string
	// Path is the archive, an OCI image layout in tar.
	Path string
}

// Build builds the images and returns the archives of those that could be built, in
// the same order; the error tells of the others. An archive that exists already is
// used again. Several processes may build at once.
func (b *Builder) Build(ctx context.Context, images ...Image) ([]Archive, error) {
	release, err := tools.Lock(ctx, filepath.Join(b.Cache, "lock"), func() {
		fmt.Fprintln(b.Out, "images: another process is building them, waiting")
	})
	if err != nil {
		return nil, err
	}
	defer release()
	bases := map[Base]v1.Layer{}
	var archives []Archive
	var errs []error
	for _, image := range images {
		archive, err := b.build(ctx, image, bases)
		if err != nil {
			errs = append(errs, fmt.Errorf("build the image %s: %w", image.Reference, err))
			continue
		}
		archives = append(archives, archive)
	}
	return archives, errors.Join(errs...)
}

// build builds one image over its base, which is made once for all images.
func (b *Builder) build(ctx context.Context, image Image, bases map[Base]v1.Layer) (_ Archive, err error) {
	if bases[image.Base] == nil {
		if bases[image.Base], err = b.makeBase(ctx, image.Base); err != nil {
			return Archive{}, err
		}
	}
	layers := []v1.Layer{bases[image.Base]}
	if image.Program == "" {
		top, err := b.top(ctx, image)
		if err != nil {
			return Archive{}, err
		}
		layers = append(layers, top)
	}
	built, err := assemble(image, layers...)
	if err != nil {
		return Archive{}, err
	}
	digest, err := built.Digest()
	if err != nil {
		return Archive{}, err
	}
	archive := Archive{Reference: image.Reference, Digest: digest.String(), Path: filepath.Join(b.Cache, archiveName(image.Reference))}
	return archive, b.save(archive, built)
}

// top is the layer with the image's own program.
func (b *Builder) top(ctx context.Context, image Image) (v1.Layer, error) {
	binary, err := b.program(ctx, image)
	if err != nil {
		return nil, err
	}
	return makeLayer([]file{{path: "/" + image.binary(), mode: 0o755, content: binary}})
}

// assemble puts the layers together and says how a container is run.
func assemble(image Image, layers ...v1.Layer) (v1.Image, error) {
	start := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	stacked, err := mutate.AppendLayers(start, layers...)
	if err != nil {
		return nil, fmt.Errorf("stack the layers: %w", err)
	}
	config, err := stacked.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: epoch}
	config.Config.Entrypoint = image.entrypoint()
	config.Config.User = fmt.Sprintf("%[1]d:%[1]d", Unprivileged)
	config.Config.WorkingDir = "/"
	config.Config.Env = image.env()
	return mutate.ConfigFile(stacked, config)
}

// program is the content of the image's program.
func (b *Builder) program(ctx context.Context, image Image) ([]byte, error) {
	if image.Tool == nil {
		return b.compile(ctx, image)
	}
	built, err := b.Tools.Build(ctx, *image.Tool)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(built.Path(image.binary()))
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	return content, nil
}

// compile builds the program, as whoever else runs it does.
func (b *Builder) compile(ctx context.Context, image Image) ([]byte, error) {
	path, err := b.Checkout.Program(ctx, image.Package)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	return content, nil
}

// save writes the archive unless the one that is there has the same digest,
// which a file beside it tells.
func (b *Builder) save(archive Archive, image v1.Image) error {
	note := archive.Path + ".digest"
	if known, err := os.ReadFile(note); err == nil && string(known) == archive.Digest {
		if _, err := os.Stat(archive.Path); err == nil {
			return nil
		}
	}
	fmt.Fprintf(b.Out, "image %s: %s\n", archive.Reference, archive.Digest)
	scratch, err := os.Create(archive.Path + ".partial")
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	if err := errors.Join(writeArchive(scratch, archive.Reference, image), scratch.Close()); err != nil {
		return err
	}
	if err := os.Rename(scratch.Name(), archive.Path); err != nil {
		return fmt.Errorf("put the archive in its place: %w", err)
	}
	return os.WriteFile(note, []byte(archive.Digest), 0o600)
}

// archiveName is the file name of an image's archive.
func archiveName(reference string) string {
	name := reference[strings.LastIndexByte(reference, '/')+1:]
	return strings.ReplaceAll(name, ":", "-") + ".tar"
}
