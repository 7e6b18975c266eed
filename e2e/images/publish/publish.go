// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/tools"
)

// Architectures are those that images are published for.
var Architectures = []string{"amd64", "arm64"}

// Options of what is published.
type Options struct {
	// Version of Serin, which is the tag of its images.
	Version string
	// Images that are built, and their Architectures.
	Images        []images.Image
	Architectures []string
	// Registry that the images are for.
	Registry Registry
	// Push has them pushed there.
	Push bool
	// Dist is the folder that they are written into; none when empty.
	Dist string
	// Changed allows files that differ from the revision. The images say so.
	Changed bool
	// Builder and Invocation are the URIs of who builds, and of this run where it has one.
	Builder, Invocation string
	// Out is told what is made.
	Out io.Writer
}

// Publisher publishes one revision.
type Publisher struct {
	Options  Options
	Checkout tools.Checkout
	Source   Source
}

// New returns a publisher of the checkout that the working folder is in.
func New(ctx context.Context, options Options) (*Publisher, error) {
	checkout, err := tools.Locate()
	if err != nil {
		return nil, err
	}
	source, err := ReadSource(ctx, checkout.Root)
	if err != nil {
		return nil, err
	}
	if len(source.Changed) > 0 && !options.Changed {
		return nil, fmt.Errorf("%d files differ from the revision that images and archives would name, such as %q: commit them",
			len(source.Changed), strings.TrimSpace(source.Changed[0]))
	}
	if options.Dist != "" {
		if options.Dist, err = filepath.Abs(options.Dist); err != nil {
			return nil, err
		}
	}
	return &Publisher{Options: options, Checkout: checkout, Source: source}, nil
}

// Images builds the images, writes and pushes them where that is wanted, and returns their
// references by digest.
func (p *Publisher) Images(ctx context.Context) ([]string, error) {
	var references []string
	for _, image := range p.Options.Images {
		made, err := p.makeImage(ctx, image)
		if err != nil {
			return nil, err
		}
		digest, err := made.Index.Digest()
		if err != nil {
			return nil, err
		}
		if err := p.deliver(ctx, made); err != nil {
			return nil, err
		}
		reference := p.Options.Registry.Host + "/" + made.Repository + "@" + digest.String()
		fmt.Fprintf(p.Options.Out, "%s (%s)\n", reference, made.Tag)
		references = append(references, reference)
	}
	return references, nil
}

// deliver writes and pushes an image where that is wanted.
func (p *Publisher) deliver(ctx context.Context, image Image) error {
	if p.Options.Dist != "" {
		folder := filepath.Join(p.Options.Dist, "images", path.Base(image.Repository)+"-"+image.Tag)
		if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
			return fmt.Errorf("make the folder for images: %w", err)
		}
		if err := writeLayout(folder, image); err != nil {
			return err
		}
	}
	if !p.Options.Push {
		return nil
	}
	return p.Options.Registry.Push(ctx, image)
}

func (p *Publisher) builder(architecture string) *images.Builder {
	b := images.NewBuilder(p.Checkout, p.Options.Out)
	stamp := p.stamp()
	b.Architecture, b.Publish = architecture, &stamp
	return b
}

func (p *Publisher) stamp() images.Stamp {
	return images.Stamp{Version: p.Options.Version, Revision: p.Source.name(), Created: p.Source.Committed}
}
