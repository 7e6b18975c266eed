// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/serin-dev/serin/e2e/tools"
)

// plugin writes an archive of kubectl-traffic for each platform, and the manifest by which
// krew installs it. It returns their paths.
func (m *maker) plugin(ctx context.Context) ([]string, error) {
	license, err := os.ReadFile(filepath.Join(m.Checkout.Root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, platform := range m.platforms {
		system, architecture, _ := strings.Cut(platform, "/")
		program, err := m.Checkout.ProgramFor(ctx, "cmd/kubectl-traffic", tools.Target{
			OS: system, Architecture: architecture, Version: "v" + m.Options.Version,
		})
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("read the plugin: %w", err)
		}
		archive := m.path(fmt.Sprintf("kubectl-traffic_%s_%s.tar.gz", system, architecture))
		err = writeArchive(archive, []packedFile{
			{name: "LICENSE", mode: 0o644, content: license},
			{name: pluginName(system), mode: 0o755, content: content},
		}, m.Source.Committed)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(m.Options.Out, archive)
		paths = append(paths, archive)
	}
	manifest, err := m.krew(paths)
	return append(paths, manifest), err
}

func pluginName(system string) string {
	if system == "windows" {
		return "kubectl-traffic.exe"
	}
	return "kubectl-traffic"
}

// krew fills in the manifest for krew as krew's own bot does.
func (m *maker) krew(archives []string) (string, error) {
	text, err := os.ReadFile(filepath.Join(m.Checkout.Root, "cmd", "kubectl-traffic", "krew.yaml"))
	if err != nil {
		return "", err
	}
	tag := "v" + m.Options.Version
	parsed, err := template.New("krew.yaml").Funcs(template.FuncMap{"addURIAndSha": func(address, tag string) (string, error) {
		address = strings.ReplaceAll(address, "{{ .TagName }}", tag)
		for _, archive := range archives {
			if filepath.Base(archive) == path.Base(address) {
				digest, err := digestOf(archive)
				return fmt.Sprintf("uri: %s\n      sha256: %s", address, digest), err
			}
		}
		return "", fmt.Errorf("the manifest names %s, which the release does not have", path.Base(address))
	}}).Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("read krew.yaml: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, struct{ TagName string }{tag}); err != nil {
		return "", fmt.Errorf("fill in krew.yaml: %w", err)
	}
	manifest := m.path("traffic.yaml")
	return manifest, writeFile(manifest, out.Bytes())
}
