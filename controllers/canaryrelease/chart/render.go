// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/serin-dev/serin/controllers/canaryrelease/chart/compare"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// rendering is one way to render a chart: as an upgrade to the next revision.
type rendering struct {
	session      *session
	release      string
	revision     int
	capabilities *common.Capabilities
}

// render is what Helm's upgrade would apply, without hooks. The chart is used up.
func (r *rendering) render(c *chartv2.Chart, values map[string]any, path []string) ([]*unstructured.Unstructured, error) {
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, releases.Invalid(fieldConfig, "the values don't fit the sub-charts: give each of them a map")
	}
	if err := checkEnabled(c, path); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: r.release, Namespace: r.session.namespace, Revision: r.revision, IsUpgrade: true}
	all, err := commonutil.ToRenderValuesWithSchemaValidation(c, values, options, r.capabilities, true)
	if err != nil {
		return nil, releases.Invalid(fieldConfig, "the values don't fit the chart's: give maps where it has maps")
	}
	merged, err := all.Table("Values")
	if err != nil {
		return nil, releases.Invalid(fieldConfig, "the values don't fit the chart's: give maps where it has maps")
	}
	if err := checkSchemas(c, merged); err != nil {
		return nil, err
	}
	files, err := engine.RenderWithClientProvider(c, all, r.session.lookups)
	if err != nil {
		if trouble := r.session.trouble(); trouble != nil {
			return nil, trouble
		}
		return nil, releases.Invalid(fieldConfig, "a template of the chart can't be rendered with config"+place(err, c)+": see why with helm upgrade --dry-run=server")
	}
	return r.objects(files)
}

func (r *rendering) objects(files map[string]string) ([]*unstructured.Unstructured, error) {
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	unreadable := releases.Invalid(fieldConfig, "with config, a template of the chart does not render to YAML objects: see why with helm upgrade --dry-run=server")
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, unreadable
	}
	var objects []*unstructured.Unstructured
	for _, m := range manifests {
		found, err := compare.Parse(m.Content)
		if err != nil {
			return nil, releases.Invalid(fieldConfig, "template "+m.Name+" does not render to YAML objects with config: "+err.Error())
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

var position = regexp.MustCompile(`([^\s:()"]+):(\d+)`)

// place is where a template failed. Of the error's text only what names a template
// of the chart is told: the rest may be what the template printed.
func place(err error, c *chartv2.Chart) string {
	names := map[string]bool{}
	templates(c, c.Name(), names)
	for _, found := range position.FindAllStringSubmatch(err.Error(), -1) {
		if names[found[1]] {
			return fmt.Sprintf(" (%s, line %s)", found[1], cmp.Or(strings.TrimLeft(found[2], "0"), "0"))
		}
	}
	return ""
}

func templates(c *chartv2.Chart, path string, names map[string]bool) {
	for _, t := range c.Templates {
		names[path+"/"+t.Name] = true
	}
	for _, s := range c.Dependencies() {
		templates(s, path+"/charts/"+s.Name(), names)
	}
}
