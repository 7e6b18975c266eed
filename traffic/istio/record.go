// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/routes"
)

// maxRecord is the most bytes of a record: the annotations of an object may have 256 KiB
// in all, of which kubectl takes as much as the whole object.
const maxRecord = 96 << 10

// Record says of a VirtualService what its owner has where a split stands. It is
// kept in the annotation serin.dev/original-routes.
type Record struct {
	// Split that the routes are changed for.
	Split string `json:"split"`
	// Root is the name of the root Service.
	Root string `json:"root"`
	// Routes that the split changed or added, and those of the owner that name one of
	// its backends themselves, in their order.
	Routes []Recorded `json:"routes"`
}

// Recorded is one route.
type Recorded struct {
	// Section is the list that holds it: http, tls or tcp.
	Section string `json:"section"`
	// Digest of the route as it was written.
	Digest string `json:"digest"`
	// Added is true for a route that the owner does not have.
	Added bool `json:"added,omitempty"`
	// Original is the route as its owner has it.
	Original map[string]any `json:"original,omitempty"`
	// Services that stand in the place of the root Service.
	Services []string `json:"services,omitempty"`
	// Mirror is the Service that the route copies requests to for the split; "" for none.
	Mirror string `json:"mirror,omitempty"`
}

// add records one route of a list and what becomes of it.
func (r *Record) add(section string, item any, out rendered) {
	if !out.changed {
		return
	}
	if out.added != nil {
		r.Routes = append(r.Routes, Recorded{Section: section, Digest: routes.Digest(out.added), Added: true})
	}
	original, _ := item.(map[string]any)
	r.Routes = append(r.Routes, Recorded{
		Section: section, Digest: routes.Digest(out.route), Original: runtime.DeepCopyJSON(original), Services: out.services, Mirror: out.mirror,
	})
}

// Encode is the text of the annotation.
func (r Record) Encode() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if len(text) > maxRecord {
		return "", fmt.Errorf("its routes to the root Service take %d bytes to record, and an annotation has room for %d; "+
			"move them to a VirtualService of their own", len(text), maxRecord)
	}
	return string(text), nil
}

// ParseRecord reads the annotation.
func ParseRecord(text string) (Record, error) {
	var r Record
	if err := utiljson.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("the annotation %s can't be read: %w", annotationOriginal, err)
	}
	if r.Root == "" && len(r.Routes) > 0 {
		return Record{}, errors.New("the annotation " + annotationOriginal + " names no root Service")
	}
	for i := range r.Routes {
		if !r.Routes[i].Added && r.Routes[i].Original == nil || !slices.Contains(sections, r.Routes[i].Section) {
			return Record{}, errors.New("the annotation " + annotationOriginal + " holds a route without its original")
		}
	}
	return r, nil
}

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
