// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/tools"
)

func newTestBuilder(t *testing.T) *Builder {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	builder := NewBuilder(checkout, io.Discard)
	builder.Cache = t.TempDir()
	return builder
}

func TestTheSameSourcesGiveTheSameDigest(t *testing.T) {
	var digests []string
	for range 2 {
		archives, err := newTestBuilder(t).Build(t.Context(), Pause)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, archives[0].Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds have the digests %s", digests)
	}
}

func TestAnArchiveIsAValidImageLayout(t *testing.T) {
	archives, err := newTestBuilder(t).Build(t.Context(), Pause)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	extract(t, archives[0].Path, folder)
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	entry := manifest.Manifests[0]
	if entry.Digest.String() != archives[0].Digest || entry.Annotations[nameAnnotation] != Pause.Reference {
		t.Errorf("the index names %s as %q, want %s as %q", entry.Digest, entry.Annotations[nameAnnotation], archives[0].Digest, Pause.Reference)
	}
	image, err := index.Image(entry.Digest)
	if err != nil {
		t.Fatal(err)
	}
	requireLayers(t, image)
	requireConfig(t, image)
}

// requireLayers reads every layer and compares it with the digest that names it.
func requireLayers(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("the image has %d layers (%v), want the base and the program", len(layers), err)
	}
	for _, layer := range layers {
		want, err := layer.Digest()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := v1.SHA256(content)
		if err != nil || got != want {
			t.Errorf("a layer has the digest %s (%v), want %s", got, err, want)
		}
	}
}

func requireConfig(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/pause"},
		Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("how a container is run (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture == "" {
		t.Errorf("the platform is %s/%s, without which importers leave the image out", config.OS, config.Architecture)
	}
}

func TestAProgramThatDoesNotCompileKeepsNoOtherImageOut(t *testing.T) {
	missing := Image{Reference: "docker.io/serin-dev/missing:dev", Package: "e2e/images/testdata", Base: Scratch}
	archives, err := newTestBuilder(t).Build(t.Context(), missing, Pause)
	if err == nil || !strings.Contains(err.Error(), missing.Reference) {
		t.Errorf("the error is %v, want one that names %s", err, missing.Reference)
	}
	if len(archives) != 1 || archives[0].Reference != Pause.Reference {
		t.Errorf("built %v, want only %s", archives, Pause.Reference)
	}
}

func TestAnUnchangedArchiveIsNotWrittenAgain(t *testing.T) {
	builder := newTestBuilder(t)
	var told bytes.Buffer
	builder.Out = &told
	for range 2 {
		if _, err := builder.Build(t.Context(), Pause); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(told.String(), Pause.Reference); got != 1 {
		t.Errorf("the archive was written %d times, want once:\n%s", got, told.String())
	}
}

func TestLayersHoldFoldersBeforeTheirFiles(t *testing.T) {
	files := withFolders([]file{{path: "/usr/sbin/nginx"}, {path: "/etc/passwd"}, {path: "/tmp", folder: true, mode: 0o1777}, {path: "/etc/passwd", mode: 1}})
	var got []string
	for _, entry := range files {
		got = append(got, entry.header().Name)
		if !entry.header().ModTime.Equal(epoch) {
			t.Errorf("%s has the time %s, which changes the digest", entry.path, entry.header().ModTime)
		}
	}
	want := []string{"etc/", "etc/passwd", "tmp/", "usr/", "usr/sbin/", "usr/sbin/nginx"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of the layer (-want +got):\n%s", diff)
	}
}

func TestAToolIsRunByTheNameOfItsFirstProgram(t *testing.T) {
	image := Image{Tool: &tools.Tool{Name: "several", Programs: []string{"first", "second"}}, Base: Scratch}
	if diff := cmp.Diff([]string{"/first"}, image.entrypoint()); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
}

func TestFollowingSymbolicLinksEnds(t *testing.T) {
	links := tree{"/a": {path: "/a", link: "b"}, "/b": {path: "/b", link: "/a"}}
	if _, err := links.follow("/a"); err == nil {
		t.Error("links in a circle were followed without an error")
	}
	if _, err := links.follow("/missing"); err == nil {
		t.Error("a missing file was found")
	}
}

// nginxConfig uses both modules that the image needs.
const nginxConfig = `
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
  include /etc/nginx/mime.types;
  access_log off;
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi; uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 127.0.0.1:8080; location / { return 200; } }
}
stream { server { listen 127.0.0.1:8081; return ok; } }
`

func TestNginxRunsFromItsLayerAsAnUnprivilegedUser(t *testing.T) {
	root := unpackBase(t, Nginx)
	config := filepath.Join(root, "tmp", "nginx.conf")
	if err := os.WriteFile(config, []byte(nginxConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	output, err := runInRoot(t, root, "/usr/sbin/nginx", "-e", "stderr", "-t", "-c", "/tmp/nginx.conf")
	if err != nil || !strings.Contains(output, "test is successful") {
		t.Errorf("nginx -t: %v\n%s", err, output)
	}
}

func TestRedisRunsFromItsLayerAsAnUnprivilegedUser(t *testing.T) {
	output, err := runInRoot(t, unpackBase(t, Redis), "/usr/bin/redis-server", "--version")
	if err != nil || !strings.HasPrefix(output, "Redis server v=") {
		t.Errorf("redis-server --version: %v\n%s", err, output)
	}
}

// unpackBase makes a base and unpacks it into a folder.
func unpackBase(t *testing.T, base Base) string {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		testenv.Missing(t, "there is no apt-get to get Debian's packages with", "run the test on Debian")
	}
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	made, err := NewBuilder(checkout, io.Discard).makeBase(t.Context(), base) // the cache saves the download
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	content, err := made.layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	unpackInto(t, content, root)
	return root
}

func extract(t *testing.T, archive, folder string) {
	t.Helper()
	content, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	unpackInto(t, content, folder)
}

// unpackInto unpacks a tar archive and makes its folders usable by everybody.
func unpackInto(t *testing.T, content io.Reader, folder string) {
	t.Helper()
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, os.FileMode(header.Mode&0o777)))
		case tar.TypeSymlink:
			err = os.Symlink(header.Linkname, path)
		default:
			data, readErr := io.ReadAll(reader)
			err = errors.Join(readErr, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, os.FileMode(header.Mode)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryImageOfTheTableHasItsOwnName(t *testing.T) {
	var names []string
	for _, image := range Table {
		names = append(names, archiveName(image.Reference))
	}
	slices.Sort(names)
	if got := slices.Compact(slices.Clone(names)); len(got) != len(names) {
		t.Errorf("two images share an archive: %v", names)
	}
}
