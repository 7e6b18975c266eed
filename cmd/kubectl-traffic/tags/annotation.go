// SPDX-License-Identifier: Apache-2.0

package tags

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Annotation on a TrafficSplit has its tags: a JSON object of tags and Services.
const Annotation = "serin.dev/tags"

// Read reads the tags of a split from its annotations. There are none without the
// annotation.
func Read(annotations map[string]string) (map[string]string, error) {
	text := annotations[Annotation]
	if text == "" {
		return map[string]string{}, nil
	}
	tags := map[string]string{}
	if err := json.Unmarshal([]byte(text), &tags); err != nil {
		return nil, fmt.Errorf("metadata.annotations[%s]: is not a JSON object of tags and Services; fix or remove it: %w", Annotation, err)
	}
	for tag, service := range tags {
		if tag == "" || service == "" {
			return nil, fmt.Errorf("metadata.annotations[%s]: has an empty tag or Service; fix or remove it", Annotation)
		}
	}
	return tags, nil
}

// Write puts the tags among the annotations, or takes the annotation away where there
// are no tags.
func Write(annotations, tags map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	if len(tags) == 0 {
		delete(annotations, Annotation)
		return annotations
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	text, err := json.Marshal(tags)
	if err != nil {
		panic(err) // text can always be written
	}
	annotations[Annotation] = string(text)
	return annotations
}

// Of lists the tags of a Service, in the order of the alphabet.
func Of(tags map[string]string, service string) string {
	var list []string
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if tags[tag] == service {
			list = append(list, tag)
		}
	}
	return strings.Join(list, ",")
}
