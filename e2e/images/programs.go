// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"

	"github.com/serin-dev/serin/e2e/images/debian"
)

// fromDebian is a base whose programs come from Debian's packages.
type fromDebian struct {
	// programs are taken with the libraries that they need.
	programs []string
	// data are files taken as they are.
	data []string
	// packages hold those files and the libraries.
	packages []string
}

var debianBases = map[Base]fromDebian{
	Nginx: {
		programs: []string{"/usr/sbin/nginx", "/usr/lib/nginx/modules/ngx_stream_module.so"},
		data:     []string{"/etc/nginx/mime.types"},
		packages: []string{
			"nginx", "nginx-common", "libnginx-mod-stream",
			"libc6", "libcrypt1", "libpcre2-8-0", "libssl3t64", "libzstd1", "zlib1g",
		},
	},
	Redis: {
		programs: []string{"/usr/bin/redis-server"},
		packages: []string{
			"redis-server", "redis-tools", "libatomic1", "libc6", "libcap2", "libgcc-s1", "libgcrypt20", "libgpg-error0",
			"libjemalloc2", "liblz4-1", "liblzf1", "liblzma5", "libssl3t64", "libstdc++6", "libsystemd0", "libzstd1", "zlib1g",
		},
	},
}

// files takes the programs out of Debian's packages. They are not installed: a
// machine that builds images does not get a server from it.
func (d fromDebian) files(ctx context.Context, source debian.Source) ([]file, []debian.Package, error) {
	packages, err := source.Fetch(ctx, d.packages...)
	if err != nil {
		return nil, nil, err
	}
	tree, err := unpack(ctx, packages)
	if err != nil {
		return nil, nil, err
	}
	files, err := tree.withLibraries(d.programs)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range d.data {
		data, ok := tree[path]
		if !ok {
			return nil, nil, fmt.Errorf("%s is in none of the packages %v", path, d.packages)
		}
		files = append(files, data)
	}
	return files, packages, nil
}
