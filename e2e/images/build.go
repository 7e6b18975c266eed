// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/serin-dev/serin/e2e/images/debian"
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
	// Architecture of the machines that the images run on; when empty, that of this one.
	Architecture string
	// Publish is what images say about themselves in a registry; nil for those of a local
	// cluster.
	Publish *Stamp
}

// Stamp is what a published image says about itself.
type Stamp struct {
	// Version of Serin, and Revision of its source in Git.
	Version, Revision string
	// Created is the time of the image. It is that of the revision, so that the same
	// revision gives the same image.
	Created time.Time
}

// Made is an image and what it is made of.
type Made struct {
	Image v1.Image
	// Programs are the paths of the image's own programs on this machine; none for a program
	// of the base.
	Programs []string
	// Packages are those of Debian that files come from.
	Packages []debian.Package
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
	bases := map[Base]base{}
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

// build builds one image into its archive.
func (b *Builder) build(ctx context.Context, image Image, bases map[Base]base) (Archive, error) {
	made, err := b.make(ctx, image, bases)
	if err != nil {
		return Archive{}, err
	}
	digest, err := made.Image.Digest()
	if err != nil {
		return Archive{}, err
	}
	archive := Archive{Reference: image.Reference, Digest: digest.String(), Path: filepath.Join(b.Cache, archiveName(image.Reference))}
	return archive, b.save(archive, made.Image)
}

// Make builds one image.
func (b *Builder) Make(ctx context.Context, image Image) (Made, error) {
	return b.make(ctx, image, map[Base]base{})
}

// make builds one image over its base, which is made once for all images.
func (b *Builder) make(ctx context.Context, image Image, bases map[Base]base) (made Made, err error) {
	under, known := bases[image.Base]
	if !known {
		if under, err = b.makeBase(ctx, image.Base); err != nil {
			return Made{}, err
		}
		bases[image.Base] = under
	}
	made.Packages = under.packages
	layers := []v1.Layer{under.layer}
	if image.Program == "" {
		top, err := b.programs(ctx, image, &made)
		if err != nil {
			return Made{}, err
		}
		layers = append(layers, top)
	}
	made.Image, err = b.assemble(image, layers...)
	return made, err
}

// assemble puts the layers together and says how a container is run.
func (b *Builder) assemble(image Image, layers ...v1.Layer) (v1.Image, error) {
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
	config.OS, config.Architecture = "linux", b.architecture()
	config.Created = v1.Time{Time: epoch}
	config.Config.Entrypoint = image.entrypoint()
	config.Config.User = fmt.Sprintf("%[1]d:%[1]d", Unprivileged)
	config.Config.WorkingDir = "/"
	config.Config.Env = image.env()
	if b.Publish == nil {
		return mutate.ConfigFile(stacked, config)
	}
	config.Created = v1.Time{Time: b.Publish.Created.UTC()}
	config.Config.Labels = b.Publish.Annotations(image)
	published, err := mutate.ConfigFile(stacked, config)
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(published, config.Config.Labels).(v1.Image), nil //nolint:forcetypeassert // as its documentation says
}

func (b *Builder) architecture() string { return cmp.Or(b.Architecture, runtime.GOARCH) }

// programs is a layer of the image's programs, which are built.
func (b *Builder) programs(ctx context.Context, image Image, made *Made) (v1.Layer, error) {
	var files []file
	for _, folder := range append([]string{image.Package}, image.Beside...) {
		built, err := b.program(ctx, image, folder)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(built)
		if err != nil {
			return nil, fmt.Errorf("read the program: %w", err)
		}
		name := image.binary()
		if folder != image.Package {
			name = path.Base(folder)
		}
		made.Programs = append(made.Programs, built)
		files = append(files, file{path: "/" + name, mode: 0o755, content: content})
	}
	return makeLayer(files, b.Publish != nil)
}

// program is the path of a program of the image, which is built.
func (b *Builder) program(ctx context.Context, image Image, folder string) (string, error) {
	if image.Tool != nil {
		built, err := b.Tools.Build(ctx, *image.Tool)
		return built.Path(image.binary()), err
	}
	target := tools.Target{OS: "linux", Architecture: b.architecture()}
	if b.Publish != nil {
		target.Version = b.Publish.Version
	}
	return b.Checkout.ProgramFor(ctx, folder, target)
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
