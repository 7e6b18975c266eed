// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
		r.Routes = append(r.Routes, Recorded{Section: section, Digest: digest(out.added), Added: true})
	}
	original, _ := item.(map[string]any)
	r.Routes = append(r.Routes, Recorded{
		Section: section, Digest: digest(out.route), Original: runtime.DeepCopyJSON(original), Services: out.services, Mirror: out.mirror,
	})
}

// digest tells routes apart. Two objects with the same fields have the same.
func digest(route any) string {
	text, err := json.Marshal(route)
	if err != nil {
		panic(err) // it was read from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
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
