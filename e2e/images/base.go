// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/serin-dev/serin/e2e/images/debian"
)

// base is the layer that lies under the program, and what it is made of.
type base struct {
	layer    v1.Layer
	packages []debian.Package
}

// makeBase makes the layer that lies under the program.
func (b *Builder) makeBase(ctx context.Context, name Base) (made base, err error) {
	files := identityFiles()
	if name != Scratch {
		from, known := debianBases[name]
		if !known {
			return base{}, fmt.Errorf("no base is called %q: use one of the constants of type Base", name)
		}
		programs, packages, err := from.files(ctx, b.debian())
		if err != nil {
			return base{}, err
		}
		files, made.packages = append(append(files, mergedFolders...), programs...), packages
	}
	made.layer, err = makeLayer(files, b.Publish != nil)
	return made, err
}

// debian is where packages come from. What is published has their newest versions.
func (b *Builder) debian() debian.Source {
	return debian.Source{Folder: b.Packages, Architecture: b.architecture(), Newest: b.Publish != nil, Out: b.Out}
}
