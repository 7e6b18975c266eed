// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// ArchiveName names the ConfigMap with the packed chart of a release.
func ArchiveName(release string) string { return "serin-chart-" + release }

// source makes charts, each time a fresh one.
type source func() (*chartv2.Chart, error)

// source finds the chart of a revision. Helm's records leave out sub-charts. A
// chart that has some comes from an archive in a ConfigMap of the namespace, which
// has to be the one that the revision was made from.
func (s *session) source(ctx context.Context, r *record) (source, error) {
	names := recordedSubCharts(r.release)
	if len(names) == 0 {
		return func() (*chartv2.Chart, error) {
			fresh, err := r.fresh()
			if err != nil {
				return nil, err
			}
			return fresh.Chart, nil
		}, nil
	}
	name := ArchiveName(r.release.Name)
	configMap, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		meta := r.release.Chart.Metadata
		return nil, releases.Invalid(fieldRelease, fmt.Sprintf("Helm keeps no sub-charts in its records (%s): put the archive of chart %s %s in a ConfigMap: "+
			"run helm package, then kubectl create configmap %s --from-file=%s-%s.tgz", strings.Join(names, ", "), meta.Name, meta.Version, name, meta.Name, meta.Version))
	}
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(configMap.BinaryData)) {
		if strings.HasSuffix(file, ".tgz") {
			return checked(configMap.BinaryData[file], name, r.release)
		}
	}
	return nil, releases.Invalid(fieldRelease, "ConfigMap "+name+" has no file *.tgz: create it from the archive that helm package makes")
}

// limitArchives bounds what an archive unpacks to as a record is bounded.
func limitArchives() { archive.MaxDecompressedChartSize = maxRecord }

// checked compares an archive with what the record has of the chart.
func checked(packed []byte, name string, release *helm.Release) (source, error) {
	load := func() (*chartv2.Chart, error) { return loader.LoadArchive(bytes.NewReader(packed)) }
	c, err := load()
	if err != nil && strings.Contains(err.Error(), "larger than the maximum size") {
		return nil, releases.Invalid(fieldRelease, fmt.Sprintf("the archive in ConfigMap %s unpacks to more than %d MiB: make the chart smaller, for instance by removing files that it does not use", name, maxRecord>>20))
	}
	if err != nil {
		return nil, releases.Invalid(fieldRelease, "ConfigMap "+name+" holds no chart that Helm can read: create it from the archive that helm package makes")
	}
	was := release.Chart
	if c.Name() != was.Name() || c.Metadata.Version != was.Metadata.Version {
		return nil, releases.Invalid(fieldRelease, fmt.Sprintf("ConfigMap %s holds chart %s %s, but revision %d was made from %s %s: replace the archive",
			name, c.Name(), c.Metadata.Version, release.Version, was.Name(), was.Metadata.Version))
	}
	if !sameFiles(c.Templates, was.Templates) || !sameFiles(c.Files, was.Files) {
		return nil, releases.Invalid(fieldRelease, fmt.Sprintf("ConfigMap %s holds other files of chart %s %s than revision %d was made from: replace the archive",
			name, c.Name(), c.Metadata.Version, release.Version))
	}
	return load, nil
}

func sameFiles(a, b []*common.File) bool {
	contents := func(files []*common.File) map[string]string {
		m := map[string]string{}
		for _, f := range files {
			m[f.Name] = string(f.Data)
		}
		return m
	}
	return maps.Equal(contents(a), contents(b))
}

var subChartSource = regexp.MustCompile(`(?m)^# Source: [^/\n]+/charts/([^/\n]+)/`)

// recordedSubCharts names the sub-charts that a revision had, of what the record
// tells: Chart.yaml lists those that were enabled, and a manifest says where each
// object is from.
func recordedSubCharts(release *helm.Release) []string {
	var names []string
	for _, d := range release.Chart.Metadata.Dependencies {
		if d != nil {
			names = append(names, d.Name)
		}
	}
	for _, found := range subChartSource.FindAllStringSubmatch(release.Manifest, -1) {
		names = append(names, found[1])
	}
	for _, h := range release.Hooks {
		if _, below, ok := strings.Cut(h.Path, "/charts/"); ok {
			name, _, _ := strings.Cut(below, "/")
			names = append(names, name)
		}
	}
	if release.Chart.Lock != nil {
		for _, d := range release.Chart.Lock.Dependencies {
			if d != nil && len(names) == 0 {
				names = append(names, d.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
