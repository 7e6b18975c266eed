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
	switch base {
	case Scratch:
	case Nginx:
		nginx, err := b.nginxFiles(ctx)
		if err != nil {
			return nil, err
		}
		files = append(files, nginx...)
	default:
		return nil, fmt.Errorf("no base is called %q: use one of the constants of type Base", base)
	}
	return makeLayer(files)
}
