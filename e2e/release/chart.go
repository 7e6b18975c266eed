// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/registry"
	"sigs.k8s.io/yaml"
)

// chartRepository is where charts are in a registry, apart from the images.
const chartRepository = "serin-dev/charts"

// Chart is the chart of a release.
type Chart struct {
	*chart.Chart
	// Path of the archive.
	Path string
}

// chart writes the archive of the chart, which names the version and the registry of its images.
func (m *maker) chart(references []string) (Chart, error) {
	loaded, err := loader.LoadDir(filepath.Join(m.Checkout.Root, "charts", "serin"))
	if err != nil {
		return Chart{}, fmt.Errorf("load the chart: %w", err)
	}
	loaded.Metadata.Version, loaded.Metadata.AppVersion = m.Options.Version, m.Options.Version
	if err := annotate(loaded, references); err != nil {
		return Chart{}, err
	}
	if err := setRegistry(loaded, m.Options.Registry.Host); err != nil {
		return Chart{}, err
	}
	setTimes(loaded, m.Source.Committed)
	archive, err := util.Save(loaded, m.Options.Dist)
	if err != nil {
		return Chart{}, fmt.Errorf("write the archive of the chart: %w", err)
	}
	fmt.Fprintln(m.Options.Out, archive)
	return Chart{Chart: loaded, Path: archive}, nil
}

// annotate names the images, for Artifact Hub and for copies to other registries.
func annotate(c *chart.Chart, references []string) error {
	type entry struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	var entries []entry
	for _, reference := range references {
		repository, _, _ := strings.Cut(reference, "@")
		entries = append(entries, entry{Name: path.Base(repository), Image: reference})
	}
	list, err := yaml.Marshal(entries)
	if err != nil {
		return fmt.Errorf("name the images of the chart: %w", err)
	}
	if c.Metadata.Annotations == nil {
		c.Metadata.Annotations = map[string]string{}
	}
	c.Metadata.Annotations["artifacthub.io/images"] = string(list)
	return nil
}

// setRegistry has the values name the registry that the images were pushed to. The text is
// changed, since the comments in it are documentation.
func setRegistry(c *chart.Chart, host string) error {
	const before = "  registry: docker.io\n"
	for _, f := range c.Raw {
		if f.Name != util.ValuesfileName {
			continue
		}
		if n := bytes.Count(f.Data, []byte(before)); n != 1 {
			return fmt.Errorf("%s of the chart has %d lines %q, not one", f.Name, n, strings.TrimSpace(before))
		}
		f.Data = bytes.Replace(f.Data, []byte(before), []byte("  registry: "+host+"\n"), 1)
		values, err := loader.LoadValues(bytes.NewReader(f.Data))
		c.Values = values
		return err
	}
	return fmt.Errorf("the chart has no %s", util.ValuesfileName)
}

// setTimes makes the archive the same for the same revision.
func setTimes(c *chart.Chart, at time.Time) {
	c.ModTime, c.SchemaModTime = at, at
	for _, f := range c.Raw {
		f.ModTime = at
	}
	for _, f := range append(c.Templates, c.Files...) {
		f.ModTime = at
	}
}

// pushChart pushes the chart as an OCI artefact, by Helm's own client: with the credentials
// of `helm registry login`, or else of `docker login`.
func (m *maker) pushChart(c Chart) error {
	reference := fmt.Sprintf("%s/%s/%s:%s", m.Options.Registry.Host, chartRepository, c.Name(), m.Options.Version)
	options := []registry.ClientOption{registry.ClientOptWriter(m.Options.Out)}
	if plain, err := m.Options.Registry.PlainHTTP(); err != nil {
		return err
	} else if plain {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		return fmt.Errorf("make a client of the registry: %w", err)
	}
	archive, err := os.ReadFile(c.Path)
	if err != nil {
		return fmt.Errorf("read the archive of the chart: %w", err)
	}
	if _, err := client.Push(archive, reference, registry.PushOptCreationTime(m.Source.Committed.Format(time.RFC3339))); err != nil {
		return fmt.Errorf("push the chart to %s: %w", reference, err)
	}
	return nil
}
