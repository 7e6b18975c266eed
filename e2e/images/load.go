// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
)

// Importer is a cluster that images can be put into.
type Importer interface {
	// ImportImages puts those images into the cluster that it does not have.
	ImportImages(ctx context.Context, archives ...Archive) error
}

// Load builds the images and puts them into the cluster. One that cannot be
// built does not keep the others out.
func Load(ctx context.Context, builder *Builder, cluster Importer, images ...Image) error {
	archives, err := builder.Build(ctx, images...)
	return errors.Join(err, cluster.ImportImages(ctx, archives...))
}
