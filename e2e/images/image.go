// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path"

	"github.com/serin-dev/serin/e2e/tools"
)

// Unprivileged is the user and group that images run as unless they say otherwise.
const Unprivileged = 65532

// Image is one image to build.
type Image struct {
	// Reference is the full name with its tag.
	Reference string
	// Package is the main package, relative to the root of the repository. It is
	// built in the module that holds it.
	Package string
	// Beside are further main packages, whose programs lie beside that of Package.
	Beside []string
	// Tool is a program of others, instead of a Package.
	Tool *tools.Tool
	// Program is the path of a program of the Base, instead of a Package.
	Program string
	// Base is what lies under the binary.
	Base Base
	// Version is given to the program as VERSION in its environment, where not empty.
	Version string
	// Title and Description are what a registry shows of an image that is published.
	Title, Description string
}

// Base is what an image consists of besides its binary.
type Base string

const (
	// Scratch is nothing but the files that name the unprivileged user.
	Scratch Base = "scratch"
	// Nginx is nginx with its stream module, from Debian, and the libraries that it needs.
	Nginx Base = "nginx"
	// Redis is the server of Redis, from Debian, and the libraries that it needs.
	Redis Base = "redis"
)

// Pause is the image that holds the namespaces of a pod.
var Pause = Image{Reference: "docker.io/serin-dev/pause:dev", Package: "e2e/images/pause", Base: Scratch}

// Traefik is the gateway of the tests with the Gateway API. It is not in the table,
// because its program takes minutes to build and only those tests need it.
var Traefik = Image{Reference: "docker.io/serin-dev/traefik:" + tools.TraefikVersion, Tool: &tools.Traefik, Base: Scratch}

// RedisServer and Echo are what the tests of CanaryReleases send bytes and datagrams to.
var (
	RedisServer = Image{Reference: "docker.io/serin-dev/redis:dev", Program: "/usr/bin/redis-server", Base: Redis}
	Echo        = Image{Reference: "docker.io/serin-dev/echo:dev", Package: "e2e/testdata/echo", Base: Scratch}
)

// Serin and SerinProxy are what a release publishes.
var (
	Serin = Image{
		Reference: "docker.io/serin-dev/serin:dev", Package: "cmd/serin", Beside: []string{"cmd/serin-helm"}, Base: Scratch,
		Title: "Serin", Description: "The control plane of Serin: the manager and the metrics server",
	}
	SerinProxy = Image{
		Reference: "docker.io/serin-dev/serin-proxy:dev", Package: "cmd/serin-proxy", Base: Nginx,
		Title: "Serin proxy", Description: "The data plane of Serin: nginx and its agent",
	}
)

// Published are the images of a release.
var Published = []Image{Serin, SerinProxy}

// Table is every image that the demo and the end-to-end tests need in a cluster.
var Table = []Image{
	Serin, SerinProxy,
	demoApp("v1"), demoApp("v2"), demoApp("v3"), demoApp("v4"),
	{Reference: "docker.io/serin-dev/loadgen:dev", Package: "e2e/demo/load", Base: Scratch},
}

// demoApp is one version of the demo's application. The versions share a binary
// and know who they are from the environment.
func demoApp(version string) Image {
	return Image{
		Reference: "docker.io/serin-dev/demo-app:" + version,
		Package:   "e2e/demo/app", Base: Scratch,
		Version: version,
	}
}

// binary is the name of the program in the image, and its path below the root.
func (i Image) binary() string {
	if i.Tool != nil {
		return i.Tool.Programs[0]
	}
	return path.Base(i.Package)
}

// env is the environment of a container of the image.
func (i Image) env() []string {
	env := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	if i.Version != "" {
		env = append(env, "VERSION="+i.Version)
	}
	return env
}

// entrypoint is what a container of the image runs.
func (i Image) entrypoint() []string {
	if i.Program != "" {
		return []string{i.Program}
	}
	return []string{"/" + i.binary()}
}
