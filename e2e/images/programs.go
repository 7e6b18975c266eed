// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
)

// Files that nginx consists of; the libraries that they need come with them.
var (
	nginxPrograms = []string{"/usr/sbin/nginx", "/usr/lib/nginx/modules/ngx_stream_module.so"}
	nginxData     = []string{"/etc/nginx/mime.types"}
)

// nginxPackages hold those files and the libraries. Of names joined by "|" the
// first that the machine's package lists know is meant.
var nginxPackages = []string{
	"nginx", "nginx-common", "libnginx-mod-stream",
	"libc6", "libcrypt1", "libpcre2-8-0", "libssl3|libssl3t64", "zlib1g",
}

// nginxFiles takes nginx out of Debian's packages. They are not installed: a
// machine that builds images does not get a web server from it.
func (b *Builder) nginxFiles(ctx context.Context) ([]file, error) {
	packages, err := b.fetchPackages(ctx, nginxPackages)
	if err != nil {
		return nil, err
	}
	tree, err := unpack(ctx, packages)
	if err != nil {
		return nil, err
	}
	files, err := tree.withLibraries(nginxPrograms)
	if err != nil {
		return nil, err
	}
	for _, path := range nginxData {
		data, ok := tree[path]
		if !ok {
			return nil, fmt.Errorf("%s is in none of the packages %v", path, nginxPackages)
		}
		files = append(files, data)
	}
	return files, nil
}
