// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/serin-dev/serin/e2e/images/publish"
)

// Platforms are those that the plugin is made for.
var Platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// maker makes the parts of a release, for the plugin's platforms.
type maker struct {
	*publish.Publisher
	platforms []string
}

// Make makes all of a release in the folder Dist, and pushes the images and the chart where
// that is wanted. The chart comes last: what it names is there.
func Make(ctx context.Context, options publish.Options) error {
	if v := "v" + options.Version; !semver.IsValid(v) || semver.Canonical(v) != v {
		return fmt.Errorf("the version %q is not like 1.2.3 or 1.2.3-rc.1", options.Version)
	}
	publisher, err := publish.New(ctx, options)
	if err != nil {
		return err
	}
	m := &maker{Publisher: publisher, platforms: Platforms}
	references, err := m.Images(ctx)
	if err != nil {
		return err
	}
	list := m.path("images.txt")
	if err := writeFile(list, []byte(strings.Join(references, "\n")+"\n")); err != nil {
		return err
	}
	chart, err := m.chart(references)
	if err != nil {
		return err
	}
	bases, err := m.kustomize(ctx, chart)
	if err != nil {
		return err
	}
	plugin, err := m.plugin(ctx)
	if err != nil {
		return err
	}
	if err := writeChecksums(m.path("checksums.txt"), append([]string{list, chart.Path, bases}, plugin...)); err != nil {
		return err
	}
	if !options.Push {
		return nil
	}
	return m.pushChart(chart)
}

// path is that of a file of the release.
func (m *maker) path(name string) string { return filepath.Join(m.Options.Dist, name) }
