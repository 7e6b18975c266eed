// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/serin-dev/serin/e2e/images/publish"
	local "github.com/serin-dev/serin/e2e/registry"
	"github.com/serin-dev/serin/e2e/tools"
)

const version = "1.2.3"

// newTestMaker makes a release of a revision that there need not be.
func newTestMaker(t *testing.T) *maker {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	return &maker{platforms: Platforms, Publisher: &publish.Publisher{
		Options:  publish.Options{Version: version, Dist: t.TempDir(), Out: io.Discard, Registry: publish.Registry{Host: "registry.example"}},
		Checkout: checkout,
		Source:   publish.Source{Committed: time.Unix(1_700_000_000, 0).UTC()},
	}}
}

func TestAVersionIsOne(t *testing.T) {
	for _, v := range []string{"", "1.2", "v1.2.3", "1.2.3+build", "latest"} {
		if err := Make(t.Context(), publish.Options{Version: v}); err == nil || !strings.Contains(err.Error(), "is not like 1.2.3") {
			t.Errorf("%q is taken: %v", v, err)
		}
	}
}

func makeChart(t *testing.T, m *maker) Chart {
	t.Helper()
	made, err := m.chart([]string{"registry.example/serin-dev/serin@sha256:00"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTheChartNamesTheReleaseAndItsRegistry(t *testing.T) {
	m := newTestMaker(t)
	loaded, err := loader.LoadFile(makeChart(t, m).Path)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Metadata.Version != version || loaded.Metadata.AppVersion != version {
		t.Errorf("the chart is %s of the app %s", loaded.Metadata.Version, loaded.Metadata.AppVersion)
	}
	if want := "- image: registry.example/serin-dev/serin@sha256:00\n  name: serin\n"; loaded.Metadata.Annotations["artifacthub.io/images"] != want {
		t.Errorf("its annotations are %v", loaded.Metadata.Annotations)
	}
	if image := loaded.Values["image"].(map[string]any); image["registry"] != "registry.example" {
		t.Errorf("images come from %v", image["registry"])
	}
	for _, f := range append(loaded.Templates, loaded.Files...) {
		if strings.HasSuffix(f.Name, ".go") {
			t.Errorf("the chart holds %s", f.Name)
		}
	}
}

func TestTheSameRevisionGivesTheSameArchives(t *testing.T) {
	var digests [][]string
	for range 2 {
		m := newTestMaker(t)
		chart := makeChart(t, m)
		bases, err := m.kustomize(t.Context(), chart)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, path := range []string{chart.Path, bases} {
			digest, err := digestOf(path)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, digest)
		}
		digests = append(digests, list)
	}
	if diff := cmp.Diff(digests[0], digests[1]); diff != "" {
		t.Errorf("the second archives differ:\n%s", diff)
	}
}

func TestTheChartIsPushedAsAnArtefact(t *testing.T) {
	server, err := local.Start(t.Context(), "127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop() //nolint:errcheck // the test has ended
	config, err := server.DockerConfig()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newTestMaker(t)
	m.Options.Registry.Host = server.Address
	chart := makeChart(t, m)
	if err := m.pushChart(chart); err != nil {
		t.Fatal(err)
	}
	client, err := registry.NewClient(registry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(server.Address + "/serin-dev/charts/serin:" + version)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(chart.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pulled.Chart.Data, want) {
		t.Error("another chart is pulled than was pushed")
	}
}

// Kustomize itself reads the bases.
func TestABaseIsWhatTheChartRenders(t *testing.T) {
	m := newTestMaker(t)
	chart := makeChart(t, m)
	if _, err := m.kustomize(t.Context(), chart); err != nil {
		t.Fatal(err)
	}
	policies, outside := map[string]int{}, []string{}
	for _, b := range bases {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(m.Options.Dist, "kustomize", b.folder))
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		got := objects(t, text)
		namespace := "v1 Namespace  serin-system"
		if _, ok := got[namespace]; ok == b.namespaced {
			t.Errorf("%s has a namespace: %v", b.folder, ok)
		}
		delete(got, namespace)
		rendered, err := b.render(t.Context(), chart, b.values())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(objects(t, []byte(rendered)), got); diff != "" {
			t.Errorf("%s differs from the chart's render (-want +got):\n%s", b.folder, diff)
		}
		for name := range got {
			if strings.Contains(name, " MutatingAdmissionPolicy ") {
				policies[b.folder]++
			}
			if b.namespaced && !strings.Contains(name, " "+releaseNamespace+" ") {
				outside = append(outside, name)
			}
		}
	}
	if policies["cluster-wide"] == 0 || policies["cluster-wide-before-1.36"] != 0 {
		t.Errorf("mutating policies of the bases: %v", policies)
	}
	if len(outside) > 0 {
		t.Errorf("the base for one namespace has objects outside of it: %v", outside)
	}
}

// objects reads manifests, by kind and name.
func objects(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	read := map[string]map[string]any{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			read[strings.Join([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, " ")] = u.Object
		}
	}
	if len(read) < 10 {
		t.Fatalf("only %d objects", len(read))
	}
	return read
}

func TestTheManifestForKrewNamesTheArchives(t *testing.T) {
	m := newTestMaker(t)
	var archives []string
	for _, platform := range Platforms {
		system, architecture, _ := strings.Cut(platform, "/")
		archive := filepath.Join(m.Options.Dist, "kubectl-traffic_"+system+"_"+architecture+".tar.gz")
		if err := writeArchive(archive, []packedFile{{name: pluginName(system), mode: 0o755, content: []byte(platform)}}, m.Source.Committed); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	path, err := m.krew(archives)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.ToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, archive := range archives {
		digest, err := digestOf(archive)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, filepath.Base(archive)+" "+digest)
	}
	for _, p := range manifest.Spec.Platforms {
		got = append(got, filepath.Base(p.URI)+" "+p.SHA256)
		if !strings.Contains(p.URI, "/releases/download/v"+version+"/") {
			t.Errorf("an archive is fetched from %s", p.URI)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || manifest.Spec.Version != "v"+version {
		t.Errorf("version %s, archives (-want +got):\n%s", manifest.Spec.Version, diff)
	}
	if _, err := m.krew(archives[1:]); err == nil {
		t.Error("an archive that is missing is not noticed")
	}
}

func TestArchivesHoldPrograms(t *testing.T) {
	m := newTestMaker(t)
	path := filepath.Join(m.Options.Dist, "a.tar.gz")
	files := []packedFile{{name: "LICENSE", mode: 0o644, content: []byte("free")}, {name: "program", mode: 0o755, content: []byte("run")}}
	if err := writeArchive(path, files, m.Source.Committed); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var got []packedFile
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(m.Source.Committed) {
			t.Errorf("%s is of %s", header.Name, header.ModTime)
		}
		got = append(got, packedFile{header.Name, header.Mode, data})
	}
	if diff := cmp.Diff(files, got, cmp.AllowUnexported(packedFile{})); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	list := filepath.Join(m.Options.Dist, "checksums.txt")
	if err := writeChecksums(list, []string{path}); err != nil {
		t.Fatal(err)
	}
	digest, err := digestOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(list); err != nil || string(text) != digest+"  a.tar.gz\n" {
		t.Errorf("the checksums are %q (%v)", text, err)
	}
}
