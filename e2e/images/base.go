// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// makeBase makes the layer that lies under the program.
func (b *Builder) makeBase(ctx context.Context, base Base) (v1.Layer, error) {
	files := identityFiles()
	if base == Scratch {
		return makeLayer(files)
	}
	debian, known := debianBases[base]
	if !known {
		return nil, fmt.Errorf("no base is called %q: use one of the constants of type Base", base)
	}
	programs, err := debian.files(ctx, b)
	if err != nil {
		return nil, err
	}
	return makeLayer(append(files, programs...))
}
