// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

var line = regexp.MustCompile(`line (\d+)`)

// parseConfig reads the values of a request. Parsers quote what they can't read, so
// of their errors only the line is told.
func parseConfig(config []byte) (map[string]any, error) {
	if several(config) {
		return nil, releases.Invalid(fieldConfig, "has several YAML documents: write one map of values")
	}
	var values any
	if err := yaml.UnmarshalStrict(config, &values); err != nil {
		where := ""
		if found := line.FindStringSubmatch(err.Error()); found != nil {
			where = " (line " + found[1] + ")"
		}
		return nil, releases.Invalid(fieldConfig, "is not valid YAML, or has a key twice"+where+": write a map of values")
	}
	m, ok := values.(map[string]any)
	if !ok {
		return nil, releases.Invalid(fieldConfig, "is not a map: write values as in a values.yaml")
	}
	if len(m) == 0 {
		return nil, releases.Invalid(fieldConfig, "is empty: write the values to try")
	}
	return m, nil
}

// several tells of more than one document with content: of those but the first a
// parser would say nothing.
func several(config []byte) bool {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(append(slices.Clone(config), '\n'))))
	count := 0
	for {
		document, err := reader.Read()
		if err != nil {
			return count > 1
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err != nil || content != nil {
			count++
		}
	}
}

// nest puts values at the path of a sub-chart.
func nest(values map[string]any, path []string) map[string]any {
	for _, name := range slices.Backward(path) {
		values = map[string]any{name: values}
	}
	return values
}

// merge is what a user would have given to Helm: the values of the revision, and
// over them those of the request.
func merge(recorded, config map[string]any, path []string) map[string]any {
	return loader.MergeMaps(recorded, nest(config, path))
}

// split takes a path apart; "" is the chart itself.
func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// checkPath finds the sub-chart of a path, by alias where it has one.
func checkPath(c *chartv2.Chart, path []string) error {
	for _, name := range path {
		names := subCharts(c)
		next, found := names[name]
		if !found {
			return releases.Invalid(fieldPath, fmt.Sprintf("chart %s has no such sub-chart: %s", c.Name(), choice(names)))
		}
		c = next
	}
	return nil
}

func choice(names map[string]*chartv2.Chart) string {
	if len(names) == 0 {
		return `it has none, leave path out or name a chart above`
	}
	var sorted []string
	for n := range names {
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	return "it has " + strings.Join(sorted, ", ")
}

// subCharts are those of a chart by the name of their values.
func subCharts(c *chartv2.Chart) map[string]*chartv2.Chart {
	byName, listed := map[string]*chartv2.Chart{}, map[string]bool{}
	for _, s := range c.Dependencies() {
		byName[s.Name()] = s
	}
	names := map[string]*chartv2.Chart{}
	if c.Metadata != nil {
		for _, d := range c.Metadata.Dependencies {
			if d == nil || byName[d.Name] == nil {
				continue
			}
			listed[d.Name] = true
			if d.Alias != "" {
				names[d.Alias] = byName[d.Name]
				continue
			}
			names[d.Name] = byName[d.Name]
		}
	}
	for name, s := range byName {
		if !listed[name] {
			names[name] = s
		}
	}
	return names
}

// checkEnabled looks for the sub-chart of a path in a chart of which the disabled
// ones have been removed.
func checkEnabled(c *chartv2.Chart, path []string) error {
	for _, name := range path {
		i := slices.IndexFunc(c.Dependencies(), func(s *chartv2.Chart) bool { return s.Name() == name })
		if i < 0 {
			return releases.Invalid(fieldPath, fmt.Sprintf("sub-chart %s of chart %s is disabled by the condition or the tags in its Chart.yaml: enable it in config, or name another", name, c.Name()))
		}
		c = c.Dependencies()[i]
	}
	return nil
}
