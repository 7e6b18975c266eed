// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// What the bases are rendered with; an overlay changes the namespace.
const (
	releaseName      = "serin"
	releaseNamespace = "serin-system"
)

// base is a base for Kustomize: the chart as it is rendered for a cluster that serves some API.
type base struct {
	folder string
	// kubernetes is the cluster's version.
	kubernetes string
	// serves are kinds that the cluster serves beside those of every cluster.
	serves []string
	// namespaced is whether it is for one namespace, and has nothing outside of it.
	namespaced bool
}

// values are those of the chart that are not its defaults.
func (b base) values() map[string]any {
	if !b.namespaced {
		return nil
	}
	return map[string]any{"watchNamespaces": []any{releaseNamespace}, "clusterObjects": map[string]any{"enabled": false}}
}

var bases = []base{
	{folder: "cluster-wide", kubernetes: "v1.36.0", serves: []string{"admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"}},
	{folder: "cluster-wide-before-1.36", kubernetes: "v1.35.0"},
	{folder: "namespaced", kubernetes: "v1.36.0", namespaced: true},
}

// kustomize writes the bases, and an archive of them whose path it returns.
func (m *maker) kustomize(ctx context.Context, c Chart) (string, error) {
	root := m.path("kustomize")
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	var packed []packedFile
	for _, b := range bases {
		files, err := b.files(ctx, c)
		if err != nil {
			return "", fmt.Errorf("make the base %s: %w", b.folder, err)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if err := writeFile(filepath.Join(root, b.folder, name), files[name]); err != nil {
				return "", err
			}
			packed = append(packed, packedFile{name: path.Join("kustomize", b.folder, name), mode: 0o644, content: files[name]})
		}
	}
	archive := m.path(fmt.Sprintf("serin-kustomize-%s.tar.gz", m.Options.Version))
	fmt.Fprintln(m.Options.Out, archive)
	return archive, writeArchive(archive, packed, m.Source.Committed)
}

// files renders the chart: a file for each of its templates, with the namespace, which Helm
// would make. One for a single namespace has that already.
func (b base) files(ctx context.Context, c Chart) (map[string][]byte, error) {
	manifest, err := b.render(ctx, c, b.values())
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	if !b.namespaced {
		texts["namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + releaseNamespace + "\n"
	}
	for document := range strings.SplitSeq("\n"+manifest, "\n---\n") {
		comment, content, found := strings.Cut(strings.TrimSpace(document), "\n")
		source, isSource := strings.CutPrefix(comment, "# Source: ")
		if !found || !isSource {
			continue
		}
		// Kustomize adds empty lines to texts that are folded, as the chart's are.
		plain, err := plainYAML(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		if plain != "" {
			texts[path.Base(source)] += "---\n" + plain
		}
	}
	index, err := yaml.Marshal(map[string]any{
		"apiVersion": types.KustomizationVersion, "kind": types.KustomizationKind, "resources": slices.Sorted(maps.Keys(texts)),
	})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"kustomization.yaml": index}
	for name, text := range texts {
		files[name] = []byte(strings.TrimPrefix(text, "---\n"))
	}
	return files, nil
}

// plainYAML writes an object again, without comments and without folded texts.
func plainYAML(text string) (string, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return "", err
	}
	out, err := yaml.Marshal(object)
	return string(out), err
}

// render is what helm install would apply, without hooks.
func (b base) render(ctx context.Context, c Chart, values map[string]any) (string, error) {
	kubernetes, err := common.ParseKubeVersion(b.kubernetes)
	if err != nil {
		return "", err
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace, install.APIVersions = releaseName, releaseNamespace, b.serves
	install.KubeVersion = kubernetes
	rendered, err := install.RunWithContext(ctx, c.Chart, values)
	if err != nil {
		return "", fmt.Errorf("render the chart: %w", err)
	}
	r, ok := rendered.(*helmrelease.Release)
	if !ok {
		return "", fmt.Errorf("helm rendered a %T", rendered)
	}
	return r.Manifest, nil
}
