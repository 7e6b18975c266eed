// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// holderOf is the split whose backends a VirtualService of a user names, or "".
func holderOf(u *unstructured.Unstructured) string {
	if name := u.GetAnnotations()[traffic.AnnotationSplit]; name != "" {
		return name
	}
	r, _ := readRecord(u)
	return r.Split
}

// readRecord is the record of a VirtualService. One that can't be read counts as none:
// it must neither keep the routes as they are nor the split from being deleted.
func readRecord(u *unstructured.Unstructured) (Record, bool) {
	text, found := u.GetAnnotations()[annotationOriginal]
	if !found {
		return Record{}, false
	}
	r, err := ParseRecord(text)
	return r, err == nil
}

// originalOf is the spec of a VirtualService as its owner means it to be without the
// split. A record that was lost is made up for by what the split says.
func originalOf(u *unstructured.Unstructured, split *splitv1.TrafficSplit) map[string]any {
	spec, _ := u.Object["spec"].(map[string]any)
	r, found := readRecord(u)
	switch {
	case found:
		return Original(spec, u.GetNamespace(), r)
	case holderOf(u) != split.Name:
		return spec
	default:
		return withoutRecord(spec, split)
	}
}

// withoutRecord puts the root Service in the place of the backends of a split wherever a
// route names all of them: such a list was written for the split. A route that names only
// one of them may as well be its owner's, and stays.
func withoutRecord(spec map[string]any, split *splitv1.TrafficSplit) map[string]any {
	root, err := traffic.RootName(split)
	var services []string
	for _, b := range split.Spec.Backends {
		services = appendNew(services, b.Service)
	}
	var mirror string
	if routing, err := splitv1.RoutingOf(split); err == nil && routing.Mirror != nil {
		mirror = routing.Mirror.Service
	}
	lost := Record{Split: split.Name, Root: root}
	for _, section := range sections {
		list, _ := spec[section].([]any)
		for range list {
			if err == nil && len(services) > 1 {
				lost.Routes = append(lost.Routes, Recorded{Section: section, Services: services, Mirror: mirror})
			}
		}
	}
	return Original(spec, split.Namespace, lost)
}
