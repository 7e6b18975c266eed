// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// manifest is what krew knows of one (pkg/index of krew, v1alpha2).
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Homepage         string     `json:"homepage"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	URI      string                `json:"uri"`
	SHA256   string                `json:"sha256"`
	Selector *metav1.LabelSelector `json:"selector"`
	Bin      string                `json:"bin"`
}

// released is the manifest as a release fills it in.
func released(t *testing.T) manifest {
	t.Helper()
	text, err := os.ReadFile("krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The address is a template itself, and what it stands for is indented as the line is.
	add := func(address, tag string) string {
		return fmt.Sprintf("uri: %s\n      sha256: %s", strings.ReplaceAll(address, "{{ .TagName }}", tag), strings.Repeat("0a", 32))
	}
	parsed, err := template.New("krew").Funcs(template.FuncMap{"addURIAndSha": add}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var filled strings.Builder
	if err := parsed.Execute(&filled, struct{ TagName string }{"v0.1.0"}); err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict([]byte(filled.String()), &m); err != nil {
		t.Fatalf("%v in\n%s", err, filled.String())
	}
	return m
}

// The rules are those by which krew itself refuses manifests.
func TestKrewTakesTheManifest(t *testing.T) {
	m := released(t)
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		t.Errorf("the kind is %s %s", m.APIVersion, m.Kind)
	}
	if m.Metadata.Name != "traffic" {
		t.Errorf("the name %q makes another command", m.Metadata.Name)
	}
	if d := m.Spec.ShortDescription; d == "" || strings.ContainsAny(d, "\r\n") || len(d) > 50 || strings.HasSuffix(d, ".") {
		t.Errorf("the short description is %q", d)
	}
	if _, err := version.ParseSemantic(m.Spec.Version); err != nil || !strings.HasPrefix(m.Spec.Version, "v") {
		t.Errorf("the version is %q: %v", m.Spec.Version, err)
	}
	if m.Spec.Description == "" || m.Spec.Homepage == "" || len(m.Spec.Platforms) == 0 {
		t.Error("the description, the homepage or the platforms are missing")
	}
	digest := regexp.MustCompile(`^[a-f0-9]{64}$`)
	for _, p := range m.Spec.Platforms {
		if !digest.MatchString(p.SHA256) || p.Bin == "" {
			t.Errorf("the platform %+v has no digest or no program", p)
		}
		if p.Selector == nil || len(p.Selector.MatchLabels) != 2 {
			t.Fatalf("the platform %+v is not chosen by os and arch", p)
		}
		os, arch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		if want := fmt.Sprintf("/v0.1.0/kubectl-traffic_%s_%s.tar.gz", os, arch); !strings.HasPrefix(p.URI, "https://") || !strings.HasSuffix(p.URI, want) {
			t.Errorf("%s %s is fetched from %s", os, arch, p.URI)
		}
		if strings.HasSuffix(p.Bin, ".exe") != (os == "windows") {
			t.Errorf("the program for %s is %s", os, p.Bin)
		}
	}
}

func TestEachMachineHasOnePlatform(t *testing.T) {
	m := released(t)
	for _, machine := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		system, arch, _ := strings.Cut(machine, "/")
		found := 0
		for _, p := range m.Spec.Platforms {
			selector, err := metav1.LabelSelectorAsSelector(p.Selector)
			if err != nil {
				t.Fatal(err)
			}
			if selector.Matches(labels.Set{"os": system, "arch": arch}) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s has %d platforms", machine, found)
		}
	}
}
