// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	intoto "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/images/debian"
	"github.com/serin-dev/serin/e2e/images/publish/provenance"
	"github.com/serin-dev/serin/e2e/images/publish/sbom"
	"github.com/serin-dev/serin/e2e/registry"
	"github.com/serin-dev/serin/e2e/tools"
)

// small is an image that is built in a moment, for every architecture.
var small = images.Image{
	Reference: "docker.io/serin-dev/small:dev", Package: "e2e/images/pause", Base: images.Scratch,
	Title: "Small", Description: "Does nothing",
}

var debianPackages = []debian.Package{
	{Name: "nginx", Version: "1.26.3-3+deb13u11", Architecture: "arm64", URL: "https://deb.example/nginx.deb", SHA256: strings.Repeat("0a", 32)},
	{Name: "libc6", Version: "2:2.41~rc1-1", Architecture: "arm64", SHA256: strings.Repeat("0b", 32)},
}

const (
	revision = "0123456789abcdef0123456789abcdef01234567"
	version  = "1.2.3"
)

// newTestPublisher publishes a revision that there need not be.
func newTestPublisher(t *testing.T) *Publisher {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	checkout.State = t.TempDir() // nothing that was built before is used again
	return &Publisher{
		Options: Options{
			Version: version, Images: []images.Image{small}, Architectures: Architectures, Dist: t.TempDir(), Out: io.Discard,
			Registry: Registry{Host: "registry.example"}, Builder: "https://example.com/builder",
		},
		Checkout: checkout,
		Source:   Source{Revision: revision, Committed: time.Unix(1_700_000_000, 0).UTC()},
	}
}

func makeSmall(t *testing.T) Image {
	t.Helper()
	made, err := newTestPublisher(t).makeImage(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTheSameRevisionGivesTheSameImagesAndDocuments(t *testing.T) {
	var digests [][]string
	for range 2 {
		made := makeSmall(t)
		list := []string{digest(t, made.Index)}
		for _, d := range made.Documents {
			list = append(list, digest(t, d))
		}
		digests = append(digests, list)
	}
	if diff := cmp.Diff(digests[0], digests[1]); diff != "" {
		t.Errorf("the second build differs:\n%s", diff)
	}
}

func digest(t *testing.T, of manifest) string {
	t.Helper()
	got, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return got.String()
}

func TestAnImageIsForEveryArchitectureAndSaysWhatItIs(t *testing.T) {
	made := makeSmall(t)
	index, err := made.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want := images.Stamp{Version: version, Revision: revision, Created: time.Unix(1_700_000_000, 0)}.Annotations(small)
	if want["org.opencontainers.image.created"] != "2023-11-14T22:13:20Z" || len(want) != 10 {
		t.Errorf("the annotations are %v", want)
	}
	if diff := cmp.Diff(want, index.Annotations); diff != "" {
		t.Errorf("annotations of the index (-want +got):\n%s", diff)
	}
	var platforms []string
	for _, m := range index.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := made.Index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Platform().String() != m.Platform.String() || !config.Created.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("the image for %s says that it is for %s, of %s", m.Platform, config.Platform(), config.Created)
		}
		if diff := cmp.Diff(want, config.Config.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// startRegistry starts a registry on loopback and returns where to push to.
func startRegistry(t *testing.T, referrers bool) Registry {
	t.Helper()
	r, err := registry.Start(t.Context(), "127.0.0.1:0", referrers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	return Registry{Host: r.Address, Keychain: r}
}

func TestARegistryHasTheImageAndItsDocuments(t *testing.T) {
	made := makeSmall(t)
	for name, referrers := range map[string]bool{"a registry that lists referrers": true, "an older one": false} {
		t.Run(name, func(t *testing.T) {
			at := startRegistry(t, referrers)
			if err := at.Push(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			repository, err := at.repository(made.Repository)
			if err != nil {
				t.Fatal(err)
			}
			index, err := remote.Index(repository.Tag(version), at.options(t.Context())...)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(index); err != nil {
				t.Error(err)
			}
			about := func(digest v1.Hash, kind string) []byte {
				text, err := at.Document(t.Context(), repository.Digest(digest.String()), kind)
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			list, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			var subjects []string
			for _, m := range list.Manifests {
				requireSBOM(t, about(m.Digest, sbom.MediaType), m)
				subjects = append(subjects, m.Digest.Hex)
			}
			whole, err := index.Digest()
			if err != nil {
				t.Fatal(err)
			}
			requireProvenance(t, about(whole, provenance.MediaType), append([]string{whole.Hex}, subjects...))
		})
	}
}

// requireSBOM compares what the SBOM names with what the program was built from.
func requireSBOM(t *testing.T, text []byte, m v1.Descriptor) {
	t.Helper()
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var locators []string
	for _, p := range document.Packages {
		for _, reference := range p.PackageExternalReferences {
			locators = append(locators, reference.Locator)
		}
	}
	if len(locators) != 2 || !strings.HasPrefix(locators[0], "pkg:oci/small@"+m.Digest.String()) ||
		!strings.HasPrefix(locators[1], "pkg:golang/stdlib@1.") {
		t.Errorf("the SBOM for %s names %q", m.Platform, locators)
	}
	if !strings.HasSuffix(document.DocumentNamespace, m.Digest.Hex) || document.CreationInfo.Created != "2023-11-14T22:13:20Z" {
		t.Errorf("the SBOM is %s, of %s", document.DocumentNamespace, document.CreationInfo.Created)
	}
}

func requireProvenance(t *testing.T, text []byte, subjects []string) {
	t.Helper()
	statement := &intoto.Statement{}
	if err := protojson.Unmarshal(text, statement); err != nil {
		t.Fatal(err)
	}
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, s := range statement.Subject {
		got = append(got, s.Digest["sha256"])
	}
	if diff := cmp.Diff(subjects, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	var predicate struct {
		BuildDefinition struct {
			ResolvedDependencies []struct {
				URI    string            `json:"uri"`
				Digest map[string]string `json:"digest"`
			} `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	}
	raw, err := protojson.Marshal(statement.Predicate)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &predicate); err != nil {
		t.Fatal(err)
	}
	first := predicate.BuildDefinition.ResolvedDependencies[0]
	if first.URI != "git+"+images.Homepage+"@"+revision || first.Digest["gitCommit"] != revision {
		t.Errorf("the source is %v", first)
	}
	if predicate.RunDetails.Builder.ID != "https://example.com/builder" {
		t.Errorf("the builder is %q", predicate.RunDetails.Builder.ID)
	}
}

func TestWithoutThePasswordNothingIsPushed(t *testing.T) {
	at := startRegistry(t, true)
	at.Keychain = authn.NewMultiKeychain()
	if err := at.Push(t.Context(), makeSmall(t)); err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("pushed with the result %v", err)
	}
}

func TestTheFolderHoldsImagesWithTheirDocuments(t *testing.T) {
	m := newTestPublisher(t)
	references, err := m.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(m.Options.Dist, "images", "small-"+version))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index, validate.Fast); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Manifests[0]; len(manifest.Manifests) != 4 || got.Annotations["org.opencontainers.image.ref.name"] != version ||
		!slices.Equal(references, []string{"registry.example/serin-dev/small@" + got.Digest.String()}) {
		t.Errorf("the folder has %v, and the references are %v", manifest.Manifests, references)
	}
}

func TestTheSBOMOfTheProxyNamesDebiansPackages(t *testing.T) {
	packages := []string{}
	text, err := sbom.Render(sbom.Image{Name: "proxy", Version: version, Digest: "sha256:00", Architecture: "arm64", Packages: debianPackages})
	if err != nil {
		t.Fatal(err)
	}
	read, err := sbom.Packages(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range read {
		packages = append(packages, p.Name+" "+p.Version+" "+p.Architecture)
	}
	if diff := cmp.Diff([]string{"nginx 1.26.3-3+deb13u11 arm64", "libc6 2:2.41~rc1-1 arm64"}, packages); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"pkg:deb/debian/nginx@1.26.3-3%2Bdeb13u11?arch=arm64"`, `"https://deb.example/nginx.deb"`, `"SHA256"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the SBOM lacks %s:\n%s", want, text)
		}
	}
}

func TestARevisionWithChangesSaysSo(t *testing.T) {
	m := newTestPublisher(t)
	m.Source.Changed = []string{" M go.mod"}
	if got := m.stamp().Revision; got != revision+"-changed" {
		t.Errorf("the revision is %q", got)
	}
	made, err := m.makeImage(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := made.Documents[2].Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil || strings.Contains(string(text), "gitCommit") {
		t.Errorf("the provenance claims a commit (%v): %s", err, text)
	}
}

func TestReplacedPackagesOfAPublishedImageAreFound(t *testing.T) {
	p := newTestPublisher(t)
	made, err := p.makeImage(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	list, err := made.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := made.Index.Image(list.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	program, err := p.Checkout.Program(t.Context(), small.Package)
	if err != nil {
		t.Fatal(err)
	}
	// The image for arm64 gets an SBOM with packages.
	if _, made.Documents[1], err = p.describe(small, "arm64", images.Made{Image: image, Programs: []string{program}, Packages: debianPackages}); err != nil {
		t.Fatal(err)
	}
	at := startRegistry(t, true)
	if err := at.Push(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	held, err := at.heldPackages(t.Context(), made.Repository, version)
	if err != nil {
		t.Fatal(err)
	}
	if len(held) != 1 || len(held["arm64"]) != len(debianPackages) {
		t.Fatalf("the SBOMs name %v", held)
	}
	newest := slices.Clone(debianPackages)
	newest[0].Version = "1.26.3-3+deb13u12"
	want := []string{"arm64: nginx has 1.26.3-3+deb13u11, Debian has 1.26.3-3+deb13u12"}
	if diff := cmp.Diff(want, replaced("arm64", held["arm64"], newest)); diff != "" {
		t.Errorf("replaced packages (-want +got):\n%s", diff)
	}
}
